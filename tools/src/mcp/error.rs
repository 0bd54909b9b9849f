//! Reasons for a failed connection or an unanswered call, and the consequences for the call.

use std::{error::Error, io, ops::RangeInclusive, time::Duration};

use everturn_proto::words::Effect;
use reqwest::StatusCode;
use rmcp::{
    model::ErrorCode,
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};

use super::{
    authorized,
    lenient::UNREADABLE,
    oauth::AccessError,
    post::PostError,
    questions::{Dialog, OPEN_URLS},
    told::HttpError,
};
use crate::{error::ToolError, question::Question};

/// Codes that JSON-RPC leaves to servers. A server answers with such a code when it no longer knows a session.
const SERVER_ERRORS: RangeInclusive<i32> = -32099..=-32000;

/// Statuses with which a server or a proxy refuses a request before anything runs.
const BEFORE_THE_TOOL: [StatusCode; 8] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::TOO_MANY_REQUESTS,
];
/// Statuses after which a repeated request may pass.
const BUSY: [StatusCode; 4] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];
/// The pause before a refused call is sent again, unless the server names another pause.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a refused call is sent again, because a turn waits for the call.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The reason for a failed connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the configuration cannot be used: {0}")]
    Options(String),
    #[error("the command cannot be started: {0}")]
    Start(io::Error),
    #[error("the handshake failed: {0}")]
    Handshake(#[from] Box<ClientInitializeError>),
    /// A child ended before the handshake. The last line of its standard error tells the reason.
    #[error("the program ended before its first answer: {0}")]
    Died(String),
    #[error("the server has no stream of events: {0}")]
    Stream(HttpError),
    #[error("the tools cannot be listed: {0}")]
    List(ServiceError),
    #[error("the server did not answer within {} s (`connect_timeout`)", .0.as_secs())]
    TimedOut(Duration),
}

impl ConnectError {
    /// True when a try in the other era cannot help: the server is away, cannot start, or wants other credentials.
    pub(super) fn is_final(&self) -> bool {
        let is_final = |error: &HttpError| match error {
            StreamableHttpError::Client(error) => error.is_connect(),
            StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                true
            }
            error => authorized::reason(error).is_some(),
        };
        match self {
            Self::Options(_) | Self::Start(_) => true,
            Self::Handshake(error) => find(&**error, |error| Some(is_final(error))) == Some(true),
            Self::Died(_) | Self::Stream(_) | Self::List(_) | Self::TimedOut(_) => false,
        }
    }

    /// True when the server has answered the handshake with an error.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Handshake(error) => matches!(**error, ClientInitializeError::JsonRpcError(_)),
            Self::Options(_)
            | Self::Start(_)
            | Self::Died(_)
            | Self::Stream(_)
            | Self::List(_)
            | Self::TimedOut(_) => false,
        }
    }
}

/// The reason for a call without an answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection had ended before the call was sent.
    NotSent,
    /// The server refused the call, or the connection failed.
    Service(ServiceError),
    /// This side ended the connection during the call.
    Ended(String),
    /// Neither an answer nor progress came within the limit.
    Silent(Duration),
}

impl CallError {
    /// Returns true when the connection is unusable. The next call makes a new connection.
    pub(super) fn is_of_connection(&self) -> bool {
        match self {
            Self::NotSent => true,
            Self::Service(ServiceError::TransportSend(sent)) => ends_connection(&*sent.error),
            // `TransportClosed` also means that the call's own stream of events broke off. A closed connection ends by itself.
            Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }

    /// Returns the pause before the call may be sent again, after a refusal by HTTP.
    pub(super) fn pause(&self) -> Duration {
        match self.post_error() {
            Some(PostError::Refused { retry_after, .. }) => {
                retry_after.unwrap_or(REFUSED_PAUSE).min(MAX_PAUSE)
            }
            Some(PostError::Unreadable(_)) | None => Duration::ZERO,
        }
    }

    /// Returns true when a repeated call may succeed, if the tool may run twice: the server is busy, or a proxy found no
    /// server.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.post_error(), Some(PostError::Refused { status, .. }) if BUSY.contains(status))
    }

    fn post_error(&self) -> Option<&PostError> {
        match self {
            Self::Service(ServiceError::TransportSend(sent)) => find(&*sent.error, PostError::of),
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => None,
        }
    }

    /// Returns true for a refusal that may concern the session instead of the call.
    pub(super) fn may_mean_session(&self) -> bool {
        match self {
            Self::Service(ServiceError::McpError(refusal)) if refusal.code == OPEN_URLS => false,
            Self::Service(ServiceError::McpError(refusal)) => {
                SERVER_ERRORS.contains(&refusal.code.0)
                    || refusal.message.to_ascii_lowercase().contains("session")
            }
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }

    /// True when the server answered the call, with an error.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Service(ServiceError::McpError(_)))
    }

    /// True when the server refused the parameters of the call before anything ran.
    pub(super) fn refuses_params(&self) -> bool {
        match self {
            Self::Service(ServiceError::McpError(refusal)) => {
                refusal.code == ErrorCode::INVALID_PARAMS
            }
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }

    /// Returns the question of a server that wants a person to open an address before the call.
    pub(super) fn question(&self, dialog: &Dialog) -> Option<Question> {
        match self {
            Self::Service(ServiceError::McpError(refusal)) if refusal.code == OPEN_URLS => {
                dialog.address(refusal.data.as_ref())
            }
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => None,
        }
    }

    /// Returns true when the tool was certainly not called: the connection was missing, or the server refused the
    /// request without reading it.
    pub(super) fn was_not_called(&self) -> bool {
        match self {
            Self::NotSent => true,
            Self::Service(ServiceError::TransportSend(sent)) => was_turned_away(&*sent.error),
            Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }

    /// Returns true when the tool was certainly not called, because the connection was missing or unknown to the server.
    pub(super) fn is_lost_connection(&self) -> bool {
        self.was_not_called() && self.post_error().is_none() && self.challenged().is_none()
    }

    /// Returns the status of a refusal that asks for other credentials.
    fn challenged(&self) -> Option<StatusCode> {
        let status = |error: &HttpError| match error {
            StreamableHttpError::AuthRequired(_) => Some(StatusCode::UNAUTHORIZED),
            StreamableHttpError::InsufficientScope(_) => Some(StatusCode::FORBIDDEN),
            _ => None,
        };
        match self {
            Self::Service(ServiceError::TransportSend(sent)) => find(&*sent.error, status),
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => None,
        }
    }

    /// Converts the failed call into an error for the model. Details stay in the log, because they may contain
    /// addresses and paths.
    pub(super) fn to_tool_error(&self, server: &str, effect: &Effect) -> ToolError {
        if let Self::Service(ServiceError::TransportSend(sent)) = self
            && let Some(failure) = find(&*sent.error, authorized::reason)
        {
            return without_access(server, failure);
        }
        if let Some(error) = self.post_error() {
            return self.not_answered(server, effect, error);
        }
        if let Some(status) = self.challenged() {
            return ToolError::Failed(format!(
                "MCP server `{server}` refused the call: HTTP {status}. The tool was not called."
            ));
        }
        if self.was_not_called() {
            return ToolError::Failed(format!(
                "MCP server `{server}` cannot be reached; the tool was not called."
            ));
        }
        match self {
            Self::Service(ServiceError::McpError(refusal)) if refusal.code == UNREADABLE => {
                unreadable(server, effect, &refusal.message)
            }
            Self::Service(ServiceError::McpError(refusal)) => ToolError::Failed(format!(
                "MCP server `{server}` refused the call: {}",
                refusal.message
            )),
            Self::Service(ServiceError::UnexpectedResponse) => ToolError::Failed(format!(
                "MCP server `{server}` answered without a valid result."
            )),
            Self::NotSent | Self::Service(_) => ToolError::Interrupted(format!(
                "The connection to MCP server `{server}` broke before the tool answered."
            )),
            Self::Ended(why) => {
                let message = format!("The connection to MCP server `{server}` was ended: {why}.");
                if effect.may_run_again() {
                    // A second identical call would get an identical answer.
                    ToolError::Failed(message)
                } else {
                    ToolError::Interrupted(message)
                }
            }
            Self::Silent(limit) => ToolError::Interrupted(format!(
                "The tool gave neither an answer nor a sign of progress for {} s and was cancelled.",
                limit.as_secs()
            )),
        }
    }
}

impl CallError {
    fn not_answered(&self, server: &str, effect: &Effect, error: &PostError) -> ToolError {
        match error {
            PostError::Refused { .. } if self.was_not_called() => ToolError::Failed(format!(
                "MCP server `{server}` refused the call: {error}. The tool was not called."
            )),
            PostError::Refused { .. } if effect.may_run_again() => {
                ToolError::Failed(format!("MCP server `{server}` refused the call: {error}."))
            }
            PostError::Refused { .. } => ToolError::Interrupted(format!(
                "MCP server `{server}` answered with {error}. The tool may have run."
            )),
            PostError::Unreadable(why) => unreadable(server, effect, why),
        }
    }
}

fn unreadable(server: &str, effect: &Effect, why: &str) -> ToolError {
    let message = format!("MCP server `{server}` answered, but the answer cannot be read: {why}.");
    if effect.may_run_again() {
        // A second identical call would get an identical answer.
        ToolError::Failed(message)
    } else {
        ToolError::Interrupted(message)
    }
}

/// True when the connection of the error is unusable. A refused or unreadable answer ends its own call alone.
fn ends_connection(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let ends = |error: &HttpError| match error {
        StreamableHttpError::Client(error) => error.is_connect(),
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => false,
        StreamableHttpError::Io(_) => {
            PostError::of(error).is_none() && authorized::reason(error).is_none()
        }
        _ => true,
    };
    find(error, |error| Some(ends(error))).unwrap_or(true)
}

fn was_turned_away(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let turned_away = |error: &HttpError| match error {
        StreamableHttpError::Client(error) => error.is_connect(),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::SessionExpired => true,
        error => match PostError::of(error) {
            Some(PostError::Refused {
                status,
                retry_after,
                ..
            }) => {
                let is_early = *status == StatusCode::SERVICE_UNAVAILABLE && retry_after.is_some();
                is_early || status.is_redirection() || BEFORE_THE_TOOL.contains(status)
            }
            Some(PostError::Unreadable(_)) => false,
            None => authorized::reason(error).is_some(),
        },
    };
    find(error, |error| turned_away(error).then_some(())).is_some()
}

/// Searches the error chain for an error of the HTTP client, and applies `look` to the error.
fn find<'a, T>(
    error: &'a (dyn Error + 'static),
    look: impl Fn(&'a HttpError) -> Option<T>,
) -> Option<T> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return look(error);
        }
        next = error.source();
    }
    None
}

/// Returns the error of a call that was not made for lack of a token.
pub(super) fn without_access(server: &str, failure: &AccessError) -> ToolError {
    let (reason, code) = (failure.for_model(), failure.code());
    ToolError::Failed(format!(
        "MCP server `{server}` is not available now: {reason} ({code}). The tool was not called."
    ))
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorData;

    use super::*;

    #[test]
    fn only_a_lost_answer_leaves_the_outcome_open() {
        let is_open = |effect, error: CallError| {
            matches!(error.to_tool_error("s", &effect), ToolError::Interrupted(_))
        };
        let large = || CallError::Ended("it sent too much".into());
        assert!(is_open(
            Effect::Once,
            CallError::Service(ServiceError::TransportClosed)
        ));
        assert!(is_open(
            Effect::Read,
            CallError::Silent(Duration::from_secs(1))
        ));
        assert!(is_open(Effect::Once, large()) && !is_open(Effect::Read, large()));
        let refused = ServiceError::McpError(ErrorData::invalid_params("no", None));
        assert!(!is_open(Effect::Once, CallError::Service(refused)));
    }
}
