//! Error responses: RFC 9457 `application/problem+json`, made here and nowhere else.
//!
//! A handler returns a [`Problem`]; [`finish`] writes its body, and also turns the framework's own error
//! responses (unknown path, wrong method) into problems.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use everturn_store::{Missing, StoreError};
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::{limits::LimitReached, schema::one_of, turns::TurnError};

/// Header with the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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
    /// The gateway's configuration has no such agent.
    UnknownAgent = "unknown_agent", BAD_REQUEST, "There is no such agent";
    /// Any other request that HTTP itself finds wrong.
    BadRequest = "bad_request", BAD_REQUEST, "The request is not valid";
    /// No credential, or one that does not hold.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Who you are is not known";
    /// The credential holds, but does not allow this.
    InsufficientScope = "insufficient_scope", FORBIDDEN, "Your credential does not allow this";
    /// A page of another origin used what its browser sends by itself.
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "Pages of this origin may not do this";
    /// No such endpoint.
    NotFound = "not_found", NOT_FOUND, "There is nothing here";
    /// No such conversation, or it belongs to someone else.
    ConversationNotFound = "conversation_not_found", NOT_FOUND, "There is no such conversation";
    /// No such tool execution in the conversation.
    ExecutionNotFound = "execution_not_found", NOT_FOUND, "There is no such tool execution";
    /// No such agent execution in the conversation.
    AgentExecutionNotFound = "agent_execution_not_found", NOT_FOUND, "There is no such agent execution";
    /// The endpoint has other methods; see the header `Allow`.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here";
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
    /// The whole body is over the limit.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The request body is too large";
    /// Too many messages wait in the conversation.
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "Too many messages wait in this conversation";
    /// Turns run or wait in as many conversations of the tenant as may be.
    TooManyTurns = "too_many_turns", TOO_MANY_REQUESTS, "Too many turns run or wait";
    /// The tenant sends requests faster than it may.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The tenant has as many streams open at this gateway as it may.
    TooManyStreamsOfTenant = "too_many_streams_of_tenant", TOO_MANY_REQUESTS, "Your tenant has too many streams open";
    /// This gateway serves as many streams as it may.
    TooManyStreams = "too_many_streams", SERVICE_UNAVAILABLE, "This gateway has no room for another stream";
    /// The database is away.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is not available";
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

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: String,
    retry_after_s: Option<u32>,
}

impl Problem {
    /// A problem; `detail` says what to do about it and holds nothing internal.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after_s: None,
        }
    }

    /// Tells the client when to try again.
    #[must_use]
    pub fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Says something else to do about it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The conversation does not exist for the caller.
    pub fn conversation_not_found(id: &str) -> Self {
        Self::new(
            Code::ConversationNotFound,
            format!("There is no conversation `{id}`."),
        )
    }

    /// The conversation has no such tool execution.
    pub fn execution_not_found(id: &str) -> Self {
        Self::new(
            Code::ExecutionNotFound,
            format!("The conversation has no such tool execution `{id}`."),
        )
    }

    /// A bug, or something that the log tells better.
    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "The log has more, under this request id.")
    }

    /// A problem for a response that the framework made.
    fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => (Code::NotFound, "No endpoint has this path."),
            StatusCode::METHOD_NOT_ALLOWED => (
                Code::MethodNotAllowed,
                "The header `Allow` lists the methods.",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => (Code::BodyTooLarge, "Send a smaller body."),
            status if status.is_client_error() => {
                (Code::BadRequest, "The request could not be read.")
            }
            _ => return Self::internal(),
        };
        Self::new(code, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the store is not available");
                Self::new(Code::StoreUnavailable, "Repeat the request in a moment.")
                    .retry_after_s(1)
            }
            StoreError::NotFound {
                what: Missing::Conversation,
                id,
            } => Self::conversation_not_found(&id),
            StoreError::NotFound { what, id } => {
                Self::new(Code::NotFound, format!("There is no {what} `{id}`."))
            }
            StoreError::QueueFull { limit } => {
                let detail = format!(
                    "{limit} messages wait already. Send this one again when a turn has ended."
                );
                Self::new(Code::QueueFull, detail).retry_after_s(5)
            }
            StoreError::TooManyTurns { limit } => {
                let detail = format!(
                    "Turns run or wait in {limit} conversations of your tenant. Send this message again when one has ended."
                );
                Self::new(Code::TooManyTurns, detail).retry_after_s(5)
            }
            StoreError::OtherContent { client_message_id } => {
                let detail = format!(
                    "A message with another text was sent as `{client_message_id}`. Choose another id."
                );
                Self::new(Code::IdempotencyConflict, detail)
            }
            StoreError::Conflict(detail) => {
                tracing::info!(detail, "a request conflicts with what is stored");
                Self::new(Code::Conflict, "Read what is stored before trying again.")
            }
            StoreError::Corrupt(detail) => {
                tracing::error!(detail, "the store holds something unexpected");
                Self::internal()
            }
        }
    }
}

impl From<LimitReached> for Problem {
    fn from(reached: LimitReached) -> Self {
        match reached {
            LimitReached::Requests { wait } => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
                let detail = "Your tenant sends more requests than this gateway allows. Wait, then send fewer.";
                Self::new(Code::RateLimited, detail).retry_after_s(seconds.saturating_add(1))
            }
            LimitReached::StreamsOfTenant { open } => {
                let detail =
                    format!("Your tenant has {open} streams open at this gateway. Close some.");
                Self::new(Code::TooManyStreamsOfTenant, detail).retry_after_s(5)
            }
            LimitReached::Streams => {
                Self::new(Code::TooManyStreams, "Connect again in a moment.").retry_after_s(5)
            }
        }
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        tracing::warn!(error = %error, "the engine did not take a call");
        let detail = "Nothing is lost: a message that was sent is stored as queued. Repeating the request is safe; \
                      give the same message_id or Idempotency-Key to have the message stored once.";
        Self::new(Code::TemporalUnavailable, detail).retry_after_s(1)
    }
}

impl IntoResponse for Problem {
    /// The body is written by [`finish`], which knows the request.
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// An error (RFC 9457). Decide by `code`.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// The page of the code, on this gateway.
    #[serde(rename = "type")]
    #[schema(
        format = "uri-reference",
        example = "/docs/errors/conversation_not_found"
    )]
    kind: String,
    /// One line for people, the same for each occurrence of the code.
    title: &'a str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What happened and what to do, for people.
    detail: &'a str,
    #[schema(value_type = Code)]
    code: &'a str,
    /// The path that was asked for.
    #[schema(format = "uri-reference", example = "/api/v1/agent/conversations/none")]
    instance: &'a str,
    /// As in the header `x-request-id`, and in the gateway's log.
    request_id: &'a str,
}

/// Middleware: gives every error response its problem body.
pub async fn finish(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let request_id = request
        .headers()
        .get(REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let mut response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response
        .extensions_mut()
        .remove::<Problem>()
        .unwrap_or_else(|| Problem::of_status(status));
    let body = ProblemBody {
        kind: format!("/docs/errors/{}", problem.code.as_str()),
        title: problem.code.title(),
        status: problem.code.status().as_u16(),
        detail: &problem.detail,
        code: problem.code.as_str(),
        instance: &path,
        request_id: &request_id,
    };
    *response.status_mut() = problem.code.status();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.body_mut() = Body::from(serde_json::to_vec(&body).unwrap_or_default());
    response
}
