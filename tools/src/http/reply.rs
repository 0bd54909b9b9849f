//! Turns a response into a result for the model, an error that the model can read, or a retry.

use everturn_proto::{Json, ToolResultEvents};
use everturn_untrusted::{Secrets, retry_after};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde::Serialize;

use crate::{content, egress::Incoming, error::ToolError};

/// The longest quote of an error's body: enough to explain the fault of a call.
const MAX_ERROR_CHARS: usize = 2000;

/// A result for the model.
#[derive(Serialize)]
struct Answer<'a> {
    status: u16,
    /// Left out for JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    /// Left out when the response has no body.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Json>,
    /// The events for the turn, which the service has written into the object of its body.
    #[serde(rename = "everturn/events", skip_serializing_if = "Option::is_none")]
    events: Option<Json>,
}

/// Reads an answer, of which the client has read at most `limit` bytes, without the tool's secrets.
pub(super) fn read(answer: Incoming, secrets: &HeaderMap, limit: usize) -> Result<Json, ToolError> {
    let Incoming {
        status,
        headers,
        body,
        is_cut,
    } = answer;
    let body = without_secrets(body, secrets);
    if !status.is_success() {
        return Err(refusal(status, &headers, &body));
    }
    if is_cut {
        return Err(ToolError::Failed(format!(
            "The service answered {status} with more than {limit} bytes. Ask for less, or for a part."
        )));
    }
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let json = content_type
        .filter(|content_type| is_json(content_type))
        .and_then(|_| {
            let text = std::str::from_utf8(&body).ok()?;
            Json::parse(text.trim()).ok()
        });
    let answer = match json {
        Some(json) => {
            let (body, events) = ToolResultEvents::split(json);
            Answer {
                status: status.as_u16(),
                content_type: None,
                body: Some(body),
                events,
            }
        }
        None if body.is_empty() => Answer {
            status: status.as_u16(),
            content_type: None,
            body: None,
            events: None,
        },
        None => {
            let body = Json::of(&content::from_bytes(body, content_type));
            Answer {
                status: status.as_u16(),
                content_type,
                body: Some(body),
                events: None,
            }
        }
    };
    Ok(Json::of(&answer))
}

/// Returns the error for a status outside 2xx. After a 502 or 504, the service behind the gateway may have carried
/// out the request.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ToolError {
    let text: String = String::from_utf8_lossy(body)
        .chars()
        .filter(|c| *c != '\0')
        .take(MAX_ERROR_CHARS)
        .collect();
    let text = text.trim();
    let message = if text.is_empty() {
        format!("The service answered {status}.")
    } else {
        format!("The service answered {status}: {text}")
    };
    match status.as_u16() {
        502 | 504 => ToolError::Interrupted(message),
        429 | 500..=599 => ToolError::Unavailable {
            message,
            retry_after: retry_after::from_headers(headers),
        },
        _ => ToolError::Failed(message),
    }
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Cuts the secrets of a tool out of a text.
fn without_secrets(body: Vec<u8>, headers: &HeaderMap) -> Vec<u8> {
    let values = headers.values();
    let values = values.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    Secrets::of(values).cut_bytes(body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    proptest! {
        /// Whatever a service answers is a result or an error for the model, and holds no secret of the tool.
        #[test]
        fn any_body_is_read_without_the_secrets(
            before in prop::collection::vec(any::<u8>(), 0..20), repeats in 0_usize..4, media_type in "application/json|text/plain|[ -~]{0,20}",
            text in "\\{?[\\[\\]{}\":,0-9a-z]{0,20}\\}?",
        ) {
            let secrets: HeaderMap = [(CONTENT_TYPE, HeaderValue::from_static("Bearer s3cret-token"))].into_iter().collect();
            let body = [before, "s3cret-token".repeat(repeats).into_bytes(), text.into_bytes()].concat();
            let cleaned = without_secrets(body.clone(), &secrets);
            let holds = |bytes: &[u8]| bytes.windows(12).any(|window| window == b"s3cret-token");
            prop_assert!(!holds(&cleaned));
            prop_assert!(holds(&body) || body == cleaned);
            let headers: HeaderMap = [(CONTENT_TYPE, HeaderValue::try_from(media_type.as_str()).unwrap())].into_iter().collect();
            let message = refusal(StatusCode::BAD_REQUEST, &headers, &cleaned).to_string();
            prop_assert!(!message.contains('\0') && message.chars().count() <= MAX_ERROR_CHARS + 100);
            let _ = is_json(&media_type);
        }
    }
}
