//! Requests with a token. A request refused with 401 is sent again once with a new token, because the server has not
//! run a refused request.

use std::io;

use reqwest::StatusCode;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::{
    oauth::{Access, AccessError, Challenge},
    post::PostError,
    told::HttpError,
};

/// The beginning of rmcp's error for a 401 without a challenge (docs/libraries.md, rmcp: a refusal without a
/// challenge).
const UNEXPLAINED_REFUSAL: &str = "HTTP 401 ";

/// Sends a request. `send` receives the token, and may be called twice.
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

/// Returns the reason for a refusal if the token was missing or did not allow the request.
pub(super) fn reason(error: &HttpError) -> Option<&AccessError> {
    match error {
        StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Wraps an access error, because rmcp only accepts foreign errors as errors of the transport.
fn no_access(error: AccessError) -> HttpError {
    StreamableHttpError::Io(io::Error::other(error))
}

/// Returns the challenge of a 401.
fn challenge(error: &HttpError) -> Option<Challenge> {
    let is_unexplained = match error {
        StreamableHttpError::AuthRequired(required) => {
            return Some(Challenge::parse(&required.www_authenticate_header));
        }
        StreamableHttpError::UnexpectedServerResponse(said) => {
            said.starts_with(UNEXPLAINED_REFUSAL)
        }
        StreamableHttpError::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        error => matches!(
            PostError::of(error),
            Some(PostError::Refused {
                status: StatusCode::UNAUTHORIZED,
                ..
            })
        ),
    };
    is_unexplained.then(Challenge::default)
}

/// Converts the error of an insufficient scope into an access error.
fn of_scope(error: HttpError) -> HttpError {
    let StreamableHttpError::InsufficientScope(refused) = &error else {
        return error;
    };
    let missing = Challenge::parse(&refused.www_authenticate_header).missing_scope();
    missing.map_or(error, |missing| no_access(AccessError::Scope(missing)))
}
