//! Requests with a token: a request that is refused for want of one is sent once more, with a new one. What was refused with
//! 401 ran nothing.

use std::io;

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::{
    oauth::{Access, AccessError, Challenge},
    told::HttpError,
};

/// How rmcp begins its error for an answer 401 without a challenge (docs/libraries.md, rmcp: a refusal without a challenge).
const UNEXPLAINED_REFUSAL: &str = "HTTP 401 ";

/// Sends a request. `send` gets its token, and may be called twice.
pub(super) async fn send<T, F>(
    access: Option<&Access>,
    send: impl Fn(Option<String>) -> F,
) -> Result<T, HttpError>
where
    F: Future<Output = Result<T, HttpError>>,
{
    let Some(access) = access else {
        return send(None).await;
    };
    let first = access.token().await.map_err(no_access)?;
    let sent = send(first.as_ref().map(|token| token.value().to_owned())).await;
    let error = match sent {
        Ok(answer) => {
            access.accepted(first.as_ref());
            return Ok(answer);
        }
        Err(error) => error,
    };
    let Some(challenge) = challenge(&error) else {
        return Err(of_scope(error));
    };
    let next = access.after_refusal(first.as_ref(), challenge).await;
    let next = next.map_err(no_access)?;
    match send(Some(next.value().to_owned())).await {
        Ok(answer) => {
            access.accepted(Some(&next));
            Ok(answer)
        }
        Err(error) if self::challenge(&error).is_some() => {
            Err(no_access(access.refused_anew(&next)))
        }
        Err(error) => Err(of_scope(error)),
    }
}

/// Why a request was not let through, when that is for want of a token or of what it allows.
pub(super) fn reason(error: &HttpError) -> Option<&AccessError> {
    match error {
        StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// rmcp has no place for an error of ours but that of a failed transport.
fn no_access(error: AccessError) -> HttpError {
    StreamableHttpError::Io(io::Error::other(error))
}

/// The challenge of an answer 401.
fn challenge(error: &HttpError) -> Option<Challenge> {
    let is_unexplained = match error {
        StreamableHttpError::AuthRequired(required) => {
            return Some(Challenge::parse(&required.www_authenticate_header));
        }
        StreamableHttpError::UnexpectedServerResponse(said) => {
            said.starts_with(UNEXPLAINED_REFUSAL)
        }
        StreamableHttpError::Client(error) => {
            error.status() == Some(reqwest::StatusCode::UNAUTHORIZED)
        }
        _ => false,
    };
    is_unexplained.then(Challenge::default)
}

/// The error of a token that does not allow what was asked, as one of ours.
fn of_scope(error: HttpError) -> HttpError {
    let StreamableHttpError::InsufficientScope(refused) = &error else {
        return error;
    };
    let missing = Challenge::parse(&refused.www_authenticate_header).missing_scope();
    missing.map_or(error, |missing| no_access(AccessError::Scope(missing)))
}
