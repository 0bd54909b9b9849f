//! Sends requests to servers and authorization servers, within limits of size and time and by the rules of
//! `[egress]`. Redirects are never followed.

use std::time::Duration;

use reqwest::{
    Method, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};

use super::error::AccessError;
use crate::egress::{Egress, Incoming, Outgoing};

/// The time limit of a request with its response. Callers wait for the sum of a grant's requests.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response. Metadata and tokens have a few KB.
const MAX_BYTES: usize = 64 * 1024;

/// Fetches a document. Returns `None` when the URL has no document.
pub(super) async fn document(
    egress: &Egress,
    url: &Url,
    configured: Option<&Url>,
) -> Result<Option<Vec<u8>>, AccessError> {
    let answer = send(egress, request(Method::GET, url), configured).await?;
    if answer.status.is_success() {
        return Ok(Some(answer.body));
    }
    let is_absent = answer.status.is_client_error()
        && !matches!(
            answer.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        );
    if is_absent {
        Ok(None)
    } else {
        Err(unexpected(&answer))
    }
}

/// Returns a request without a body that accepts JSON.
pub(super) fn request(method: Method, url: &Url) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    Outgoing {
        method,
        url: url.clone(),
        headers,
        signer: None,
        body: None,
        timeout: TIMEOUT,
        max_response_bytes: MAX_BYTES,
    }
}

/// Sends a request. A URL with the origin of `configured` needs no permission, because the operator has configured
/// the origin.
pub(super) async fn send(
    egress: &Egress,
    request: Outgoing,
    configured: Option<&Url>,
) -> Result<Incoming, AccessError> {
    let answer = egress.send_directly(&request, configured).await;
    let answer = answer.map_err(|error| AccessError::unanswered(&error))?;
    if answer.is_cut {
        return Err(AccessError::Unavailable(format!(
            "the answer has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(answer)
}

/// Returns the error of a response that cannot be used.
pub(super) fn unexpected(answer: &Incoming) -> AccessError {
    let status = answer.status.as_u16();
    AccessError::Unavailable(if answer.status.is_redirection() {
        format!("the answer has status {status}, and redirects are not followed")
    } else {
        format!("it answered with {status}")
    })
}
