//! The codes of error responses. Every code has a page in `docs/errors`.

use axum::http::StatusCode;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::schema::one_of;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $status:ident, $title:literal;)+) => {
        /// The code of an error, which tells a client how to react. Codes are stable. Every code has a page in
        /// `docs/errors/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the code as clients see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// Returns the HTTP status of the code.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            /// Returns the title: one line that is equal for every occurrence of the code.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON, or lacks a field, or has a field of the wrong type.
    InvalidBody = "invalid_body", BAD_REQUEST, "The request body is not valid";
    /// An object in the arguments of a tool has a key more than once.
    RepeatedKey = "repeated_key", BAD_REQUEST, "An object has a key more than once";
    /// A query parameter or header is not valid.
    InvalidParameter = "invalid_parameter", BAD_REQUEST, "A parameter is not valid";
    /// An id has characters that ids cannot have.
    InvalidId = "invalid_id", BAD_REQUEST, "An id is not valid";
    /// The message has no text, or contains a NUL.
    InvalidMessage = "invalid_message", BAD_REQUEST, "The message is not valid";
    /// The key does not exist, or belongs to another tenant.
    KeyNotFound = "key_not_found", NOT_FOUND, "No key has this id";
    /// The gateway's configuration does not have the agent for the caller's tenant.
    UnknownAgent = "unknown_agent", BAD_REQUEST, "No agent has this name";
    /// The agent of the conversation does not have the chosen model.
    UnknownModel = "unknown_model", BAD_REQUEST, "The agent does not have this model";
    /// The request is not valid HTTP, in a way without a code of its own.
    BadRequest = "bad_request", BAD_REQUEST, "The request is not valid";
    /// The request has no valid credential.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "The request has no valid credential";
    /// The credential is valid, but lacks the required scope.
    InsufficientScope = "insufficient_scope", FORBIDDEN, "Your credential does not allow the request";
    /// An admin refuses the owner of the credential.
    OwnerRefused = "owner_refused", FORBIDDEN, "The owner of your credential is refused";
    /// The tenant has the most owners with refused credentials.
    TooManyRefusedOwners = "too_many_refused_owners", CONFLICT, "The tenant has too many refused owners";
    /// Four eyes: the caller has sent a message of the turn, or is unknown.
    ApprovalNeedsOther = "approval_needs_other", FORBIDDEN, "Another person must approve";
    /// Four eyes: an approval of one call cannot be remembered for later calls.
    ApprovalNotRemembered = "approval_not_remembered", BAD_REQUEST, "The approval cannot be remembered";
    /// A page of another origin used a browser's session, or a gateway without required credentials.
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "The origin of the page is not allowed";
    /// A request without a credential used a host name that the gateway does not know as its own.
    HostNotAllowed = "host_not_allowed", FORBIDDEN, "The host name is not allowed";
    /// The endpoint does not exist.
    NotFound = "not_found", NOT_FOUND, "The requested resource does not exist";
    /// The conversation does not exist, or belongs to another tenant or owner.
    ConversationNotFound = "conversation_not_found", NOT_FOUND, "No conversation has this id";
    /// The configuration has no tool server of this name that people consent to.
    ToolServerNotFound = "tool_server_not_found", NOT_FOUND, "No tool server of this name needs a consent";
    /// The caller's credential has no owner, so nobody can consent with the credential.
    ConsentNeedsPerson = "consent_needs_person", FORBIDDEN, "Only a person can consent";
    /// The browser came back with a state that is unknown, used or over.
    ConsentStateRefused = "consent_state_refused", BAD_REQUEST, "The consent is unknown, used or over";
    /// Another person is signed in to the browser than the person who began the consent.
    ConsentOfOther = "consent_of_other", FORBIDDEN, "Another person began the consent";
    /// The person or the authorization server refused.
    ConsentRefused = "consent_refused", CONFLICT, "The consent was refused";
    /// The authorization server cannot be used.
    ConsentUnavailable = "consent_unavailable", SERVICE_UNAVAILABLE, "The authorization server cannot be used";
    /// The conversation does not have the tool execution.
    ExecutionNotFound = "execution_not_found", NOT_FOUND, "No tool execution has this id";
    /// The conversation does not have the agent execution.
    AgentExecutionNotFound = "agent_execution_not_found", NOT_FOUND, "No agent execution has this id";
    /// The agent execution has no LLM call with a stored reply at the step.
    CallNotFound = "call_not_found", NOT_FOUND, "No LLM call of this step has an answer";
    /// The image or file does not exist, or belongs to another tenant, owner or conversation.
    BlobNotFound = "blob_not_found", NOT_FOUND, "No file has this id";
    /// The endpoint has other methods; see the header `Allow`.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The endpoint does not allow the method";
    /// The body came too slowly.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request took too long to arrive";
    /// The id belongs to a conversation that the caller cannot see.
    ConversationIdTaken = "conversation_id_taken", CONFLICT, "The conversation id is taken";
    /// A turn is running, and the client sent the message with `on_busy` set to `reject`.
    TurnRunning = "turn_running", CONFLICT, "A turn is running in the conversation";
    /// The conversation cannot resume: the last turn has ended, and no message waits.
    TurnComplete = "turn_complete", CONFLICT, "The conversation's last turn has ended";
    /// The conversation cannot resume: no turn has ever begun, and no message waits.
    NoCheckpoint = "no_checkpoint", NOT_FOUND, "The conversation has no turn to resume";
    /// The turn cannot be retried: the turn has not failed, or is not the newest of the conversation.
    NotRetryable = "not_retryable", CONFLICT, "The turn cannot be retried";
    /// The call already has an answer, needs no answer, or belongs to an ended turn.
    ApprovalAnswered = "approval_answered", CONFLICT, "The approval has been answered";
    /// The answer came after the approval's expiry.
    ApprovalExpired = "approval_expired", CONFLICT, "The approval came too late";
    /// The answer is for another tool, another input or another definition of the tool.
    ApprovalMismatch = "approval_mismatch", CONFLICT, "The approval is for another input";
    /// The outcome of the call is not unknown.
    OutcomeKnown = "outcome_known", CONFLICT, "The outcome of the call is not unknown";
    /// A person has settled the outcome in another way.
    OutcomeSettled = "outcome_settled", CONFLICT, "The outcome has been settled otherwise";
    /// Another client runs the call.
    ClientToolClaimed = "client_tool_claimed", CONFLICT, "Another client runs the call";
    /// Another result came first, or the turn ended.
    ClientToolAnswered = "client_tool_answered", CONFLICT, "The client tool has a result";
    /// The result came after the call's expiry.
    ClientToolExpired = "client_tool_expired", CONFLICT, "The result came too late";
    /// The turn of the waiting call is not running; resume the conversation.
    TurnNotRunning = "turn_not_running", CONFLICT, "The turn is not running";
    /// The client used the id for a different message before.
    IdempotencyConflict = "idempotency_conflict", CONFLICT, "The idempotency key was used for another message";
    /// The request contradicts stored data.
    Conflict = "conflict", CONFLICT, "The request conflicts with stored data";
    /// The message is over the limit.
    MessageTooLong = "message_too_long", PAYLOAD_TOO_LARGE, "The message is too long";
    /// The result of a client tool is over the limit.
    ResultTooLarge = "result_too_large", PAYLOAD_TOO_LARGE, "The result is too large";
    /// An uploaded file is over the limit.
    BlobTooLarge = "blob_too_large", PAYLOAD_TOO_LARGE, "The file is too large";
    /// The attachments of a message are over a limit.
    TooManyAttachments = "too_many_attachments", PAYLOAD_TOO_LARGE, "The message has too many attachments";
    /// The gateway does not take files of the type, or the bytes are of another type.
    BlobTypeRefused = "blob_type_refused", UNSUPPORTED_MEDIA_TYPE, "The file type is not accepted";
    /// The header `Range` asks for bytes behind the end.
    RangeNotSatisfiable = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "The file does not have the requested bytes";
    /// The whole body is over the limit.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The request body is too large";
    /// Too many messages wait in the conversation.
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "Too many messages wait in the conversation";
    /// The tenant, or the owner, has the most conversations with a running turn or a waiting message.
    TooManyTurns = "too_many_turns", TOO_MANY_REQUESTS, "Too many turns run or wait";
    /// The tenant has the most bytes of files that no message names yet.
    TooManyBlobs = "too_many_blobs", TOO_MANY_REQUESTS, "Too many uploaded files have no message";
    /// The tenant, or the owner, sends requests faster than allowed; or an address tried too many unknown keys.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The tenant's requests, answers and streams hold more memory than the tenant's share.
    TooMuchAtOnce = "too_much_at_once", TOO_MANY_REQUESTS, "Your tenant's requests and streams use too much memory";
    /// The owner has the most open streams of an owner.
    TooManyStreamsOfOwner = "too_many_streams_of_owner", TOO_MANY_REQUESTS, "You have too many streams open";
    /// The tenant has the most open streams of a tenant.
    TooManyStreamsOfTenant = "too_many_streams_of_tenant", TOO_MANY_REQUESTS, "Your tenant has too many streams open";
    /// The gateway has the most open streams.
    TooManyStreams = "too_many_streams", SERVICE_UNAVAILABLE, "The gateway has too many streams open";
    /// The database is away.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is not available";
    /// The object store of the files is away.
    BlobsUnavailable = "blobs_unavailable", SERVICE_UNAVAILABLE, "The file store is not available";
    /// The engine is away.
    TemporalUnavailable = "temporal_unavailable", SERVICE_UNAVAILABLE, "The workflow engine is not available";
    /// No worker took the call to the turn in time.
    TurnUnavailable = "turn_unavailable", SERVICE_UNAVAILABLE, "The turn did not answer in time";
    /// The gateway cannot read the identity provider's keys.
    IssuerUnavailable = "issuer_unavailable", SERVICE_UNAVAILABLE, "The identity provider is not available";
    /// The gateway is stopping.
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "The gateway is shutting down";
    /// A bug, or data that the gateway's version cannot read.
    Internal = "internal", INTERNAL_SERVER_ERROR, "An internal error occurred";
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let codes: Vec<_> = Self::ALL.iter().map(|code| code.as_str()).collect();
        one_of(&codes).into()
    }
}

impl ToSchema for Code {}
