//! Reasons for a failed connection or an unanswered call, and the consequences for the call.

use std::{error::Error, io, ops::RangeInclusive, time::Duration};

use everturn_proto::words::Effect;
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};

use super::{authorized, oauth::AccessError, told::HttpError};
use crate::error::ToolError;

/// Codes that JSON-RPC leaves to servers. A server answers with such a code when it no longer knows a session.
const SERVER_ERRORS: RangeInclusive<i32> = -32099..=-32000;

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
    #[error("the tools cannot be listed: {0}")]
    List(ServiceError),
    #[error("the server did not answer within {} s (`connect_timeout`)", .0.as_secs())]
    TimedOut(Duration),
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
            Self::NotSent
            | Self::Service(ServiceError::TransportSend(_) | ServiceError::TransportClosed) => true,
            Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }

    /// Returns true for a refusal that may concern the session instead of the call.
    pub(super) fn may_mean_session(&self) -> bool {
        match self {
            Self::Service(ServiceError::McpError(refusal)) => {
                SERVER_ERRORS.contains(&refusal.code.0)
            }
            Self::NotSent | Self::Service(_) | Self::Ended(_) | Self::Silent(_) => false,
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

    /// Converts the failed call into an error for the model. Details stay in the log, because they may contain
    /// addresses and paths.
    pub(super) fn to_tool_error(&self, server: &str, effect: &Effect) -> ToolError {
        if let Self::Service(ServiceError::TransportSend(sent)) = self
            && let Some(failure) = find(&*sent.error, authorized::reason)
        {
            return without_access(server, failure);
        }
        if self.was_not_called() {
            return ToolError::Failed(format!(
                "MCP server `{server}` cannot be reached; the tool was not called."
            ));
        }
        match self {
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

fn was_turned_away(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let turned_away = |error: &HttpError| match error {
        StreamableHttpError::Client(error) => error.is_connect(),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::SessionExpired => true,
        error => authorized::reason(error).is_some(),
    };
    find(error, |error| turned_away(error).then_some(())).is_some()
}

/// Searches the error chain for an error of the HTTP client, and applies `look` to the error.
fn find<'a, T>(
    error: &'a (dyn Error + Send + Sync + 'static),
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
