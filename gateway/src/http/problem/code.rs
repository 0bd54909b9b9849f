//! The codes of error responses. Each has a page in `docs/errors`.

use axum::http::StatusCode;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::schema::one_of;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $status:ident, $title:literal;)+) => {
        /// What went wrong, by what the client can do about it. Codes are stable; each has a page in
        /// `docs/errors/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as clients see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The HTTP status it goes with.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            /// One line that does not depend on the occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON, or lacks a field or has one of the wrong type.
    InvalidBody = "invalid_body", BAD_REQUEST, "The request body is not valid";
    /// A query parameter or header.
    InvalidParameter = "invalid_parameter", BAD_REQUEST, "A parameter is not valid";
    /// An id with characters that ids cannot have.
    InvalidId = "invalid_id", BAD_REQUEST, "An id is not valid";
    /// A message without text, or with a NUL.
    InvalidMessage = "invalid_message", BAD_REQUEST, "The message is not valid";
    /// No such key, or one of another tenant.
    KeyNotFound = "key_not_found", NOT_FOUND, "There is no such key";
    /// The gateway's configuration has no such agent.
    UnknownAgent = "unknown_agent", BAD_REQUEST, "There is no such agent";
    /// Any other request that HTTP itself finds wrong.
    BadRequest = "bad_request", BAD_REQUEST, "The request is not valid";
    /// No credential, or one that does not hold.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Who you are is not known";
    /// The credential holds, but does not allow this.
    InsufficientScope = "insufficient_scope", FORBIDDEN, "Your credential does not allow this";
    /// Four eyes: the caller has sent a message of the turn, or is not known.
    ApprovalNeedsOther = "approval_needs_other", FORBIDDEN, "Somebody else has to approve";
    /// A page of another origin used what its browser sends by itself.
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "Pages of this origin may not do this";
    /// A request without a credential came by a name that is not known to be the gateway's.
    HostNotAllowed = "host_not_allowed", FORBIDDEN, "This gateway is not known by this name";
    /// No such endpoint.
    NotFound = "not_found", NOT_FOUND, "There is nothing here";
    /// No such conversation, or it belongs to someone else.
    ConversationNotFound = "conversation_not_found", NOT_FOUND, "There is no such conversation";
    /// No such tool execution in the conversation.
    ExecutionNotFound = "execution_not_found", NOT_FOUND, "There is no such tool execution";
    /// No such agent execution in the conversation.
    AgentExecutionNotFound = "agent_execution_not_found", NOT_FOUND, "There is no such agent execution";
    /// No such image or file, or it belongs to someone else or to another conversation.
    BlobNotFound = "blob_not_found", NOT_FOUND, "There is no such file";
    /// The endpoint has other methods; see the header `Allow`.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here";
    /// The body came too slowly.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request took too long to arrive";
    /// The id belongs to a conversation that the caller cannot see.
    ConversationIdTaken = "conversation_id_taken", CONFLICT, "The conversation id is taken";
    /// A message that may not wait, and a turn that runs.
    TurnRunning = "turn_running", CONFLICT, "A turn is running in this conversation";
    /// Nothing to resume: the last turn has ended, and no message waits.
    TurnComplete = "turn_complete", CONFLICT, "The conversation's last turn has ended";
    /// Nothing to resume: no turn has ever begun, and no message waits.
    NoCheckpoint = "no_checkpoint", NOT_FOUND, "There is nothing to resume";
    /// The call has an answer, needs none, or its turn ended.
    ApprovalAnswered = "approval_answered", CONFLICT, "The approval has been answered";
    /// Nobody answered in time.
    ApprovalExpired = "approval_expired", CONFLICT, "The approval came too late";
    /// The answer is for another tool or input.
    ApprovalMismatch = "approval_mismatch", CONFLICT, "The approval is for another input";
    /// Another client runs the call.
    ClientToolClaimed = "client_tool_claimed", CONFLICT, "Another client runs the call";
    /// Another result was first, or the turn ended.
    ClientToolAnswered = "client_tool_answered", CONFLICT, "The client tool has a result";
    /// No result came in time.
    ClientToolExpired = "client_tool_expired", CONFLICT, "The result came too late";
    /// What the call waits in is gone; resume it.
    TurnNotRunning = "turn_not_running", CONFLICT, "The turn is not running";
    /// The client's id of a message was used for another message.
    IdempotencyConflict = "idempotency_conflict", CONFLICT, "The idempotency key was used for another message";
    /// The request contradicts what is stored.
    Conflict = "conflict", CONFLICT, "The request conflicts with what is stored";
    /// The message is over the limit.
    MessageTooLong = "message_too_long", PAYLOAD_TOO_LARGE, "The message is too long";
    /// The result of a client tool is over the limit.
    ResultTooLarge = "result_too_large", PAYLOAD_TOO_LARGE, "The result is too large";
    /// An uploaded file is over the limit.
    BlobTooLarge = "blob_too_large", PAYLOAD_TOO_LARGE, "The file is too large";
    /// The attachments of a message are over a limit.
    TooManyAttachments = "too_many_attachments", PAYLOAD_TOO_LARGE, "The message has too many attachments";
    /// Files of this type are not taken, or the bytes are of another type.
    BlobTypeRefused = "blob_type_refused", UNSUPPORTED_MEDIA_TYPE, "Files of this type are not taken";
    /// The header `Range` asks for bytes behind the end.
    RangeNotSatisfiable = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "There are no such bytes";
    /// The whole body is over the limit.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The request body is too large";
    /// Too many messages wait in the conversation.
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "Too many messages wait in this conversation";
    /// Turns run or wait in as many conversations of the tenant, or of the owner, as may be.
    TooManyTurns = "too_many_turns", TOO_MANY_REQUESTS, "Too many turns run or wait";
    /// The tenant has uploaded as much as may be that no message names.
    TooManyBlobs = "too_many_blobs", TOO_MANY_REQUESTS, "Too many files wait for their messages";
    /// The tenant, or the owner, sends requests faster than it may.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The tenant's requests, answers and streams hold more memory than its share.
    TooMuchAtOnce = "too_much_at_once", TOO_MANY_REQUESTS, "Your tenant reads or sends too much at once";
    /// The owner has as many streams open as an owner may.
    TooManyStreamsOfOwner = "too_many_streams_of_owner", TOO_MANY_REQUESTS, "You have too many streams open";
    /// The tenant has as many streams open as it may.
    TooManyStreamsOfTenant = "too_many_streams_of_tenant", TOO_MANY_REQUESTS, "Your tenant has too many streams open";
    /// This gateway serves as many streams as it may.
    TooManyStreams = "too_many_streams", SERVICE_UNAVAILABLE, "This gateway has no room for another stream";
    /// The database is away.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is not available";
    /// The object store that holds files is away.
    BlobsUnavailable = "blobs_unavailable", SERVICE_UNAVAILABLE, "The store of files is not available";
    /// The engine is away.
    TemporalUnavailable = "temporal_unavailable", SERVICE_UNAVAILABLE, "The workflow engine is not available";
    /// No worker took the call to the turn in time.
    TurnUnavailable = "turn_unavailable", SERVICE_UNAVAILABLE, "The turn did not answer in time";
    /// The identity provider's keys cannot be read.
    IssuerUnavailable = "issuer_unavailable", SERVICE_UNAVAILABLE, "The identity provider is not available";
    /// This gateway is stopping.
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "This gateway is shutting down";
    /// A bug, or data that this version cannot read.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong inside";
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let codes: Vec<_> = Self::ALL.iter().map(|code| code.as_str()).collect();
        one_of(&codes).into()
    }
}

impl ToSchema for Code {}
