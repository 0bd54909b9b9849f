//! Makes the error of a model call from a provider's answer, or from its silence. The error's code names the remedy.
//!
//! A message never has a key: our texts are written without it, and `Endpoint::without_secrets` removes the secrets
//! that a provider repeats. Must not be here: code for the library of one adapter.

use std::{error::Error as StdError, time::Duration};

use everturn_proto::words::FailureCode;
use everturn_untrusted::retry_after;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use crate::{
    error::ModelError,
    said::{self, Kind, MAX_DETAIL_CHARS, detail, inner_error, names},
    wire::shown,
};

/// The provider and the model of a call, for messages.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

pub(super) fn unknown_provider(provider: &str) -> ModelError {
    ModelError::new(
        FailureCode::LlmNotFound,
        format!(
            "The worker's configuration has no provider `{provider}`; add [providers.{provider}]."
        ),
    )
}

pub(super) fn stream_cut(provider: &str) -> ModelError {
    ModelError::new(
        FailureCode::LlmStreamCut,
        format!("The stream of provider `{provider}` ended before the reply did."),
    )
}

/// Returns the error of a reply without a text and without a call.
pub(super) fn empty(provider: &str, word: Option<&str>) -> ModelError {
    let word = word.map_or_else(
        || "no finish word".to_owned(),
        |word| format!("`{}`", short(word)),
    );
    ModelError::new(
        FailureCode::LlmEmptyReply,
        format!(
            "Provider `{provider}` ended the reply ({word}) without a text and without a tool call; ask again, or check \
             that the model can use the agent's tools."
        ),
    )
}

/// Returns the beginning of a provider's text.
pub(super) fn short(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_DETAIL_CHARS)
        .collect()
}

/// Returns the error of a frame that is no JSON. The frame was damaged on its way, or the server wrote it wrongly.
pub(super) fn unreadable_frame(call: Call<'_>, text: &str) -> ModelError {
    ModelError::new(
        FailureCode::LlmStreamCut,
        format!(
            "Provider `{}` sent a frame that is no JSON, and the reply ended there: {}",
            call.provider,
            shown(text)
        ),
    )
}

/// Returns the error of a body that is neither a stream nor JSON.
pub(super) fn not_a_stream(call: Call<'_>, text: &str) -> ModelError {
    let provider = call.provider;
    let what = if text.trim_start().starts_with('<') {
        "HTML"
    } else {
        "a text"
    };
    ModelError::new(
        FailureCode::LlmBadRequest,
        format!(
            "Provider `{provider}` answered with {what} in place of a reply: check `base_url` of \
             [providers.{provider}], and proxies on the way. The answer begins: {}",
            shown(text)
        ),
    )
}

/// Returns the error of a body in an unknown encoding.
pub(super) fn unknown_encoding(call: Call<'_>) -> ModelError {
    ModelError::new(
        FailureCode::LlmBadRequest,
        format!(
            "Provider `{}` compressed the reply in a way that Everturn did not ask for and cannot read; only gzip and \
             deflate are known.",
            call.provider
        ),
    )
}

/// True for a frame that reports an error, in the shapes of every provider. A frame with parts of a reply is no error,
/// unless it names one.
pub(super) fn is_error(frame: &Value) -> bool {
    let is_some = |key: &str| match &frame[key] {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    let is_reply = ["choices", "candidates", "output", "content", "delta"]
        .iter()
        .any(|key| is_some(key));
    let names_error = frame["object"] == "error" || frame["type"] == "error";
    let has_words = ["detail", "message", "error_message"]
        .iter()
        .any(|key| frame[key].is_string() || key == &"detail" && is_some(key));
    // The events of two wires have a `type`, and Anthropic's `message_start` a `message`.
    is_some("error")
        || names_error
        || (!is_reply && frame["type"].as_str().is_none_or(is_error_word) && has_words)
}

/// True for the type of an error without a sign that it is one.
fn is_error_word(word: &str) -> bool {
    word.to_ascii_lowercase().contains("error")
}

/// Returns the error of a reply that the provider stopped, or did not begin, because of its content.
pub(super) fn content_policy(provider: &str, reason: &str) -> ModelError {
    let reason = short(reason);
    ModelError::new(
        FailureCode::LlmContentPolicy,
        format!(
            "The content policy of provider `{provider}` forbids the request or the reply: {reason}"
        ),
    )
}

/// Returns the error of a reply that the provider ended before its completion, by its stop reason.
pub(super) fn broken_off(provider: &str, reason: &str) -> ModelError {
    let call = Call {
        provider,
        model: "",
    };
    unavailable(
        call,
        &format!("the provider broke off the reply ({reason})"),
        None,
    )
}

pub(super) fn from_reqwest(call: Call<'_>, error: &reqwest::Error) -> ModelError {
    if error.is_timeout() {
        return unavailable(call, "the provider sent no data for too long", None);
    }
    if error.is_builder() {
        let message = format!(
            "The request to provider `{}` could not be made: {}.",
            call.provider,
            root(error)
        );
        return ModelError::new(FailureCode::LlmBadRequest, message);
    }
    if error.is_connect() || error.is_request() {
        return unavailable(call, &root(error), None);
    }
    stream_cut(call.provider)
}

pub(super) fn from_status(
    call: Call<'_>,
    status: StatusCode,
    body: &str,
    headers: &HeaderMap,
) -> ModelError {
    let Call { provider, model } = call;
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let detail = detail(&body);
    let said = |text: &str| {
        format!(
            "Provider `{provider}` {text} ({}){}",
            status.as_u16(),
            quoted(detail.as_deref())
        )
    };
    let wait = || {
        retry_after::from_headers(headers)
            .or_else(|| said::retry_delay(&body).map(retry_after::bounded))
    };
    match (status.as_u16(), said::kind(&body)) {
        (400..=499, Some(Kind::Policy)) => policy(call, detail.as_deref()),
        (400 | 402 | 403 | 429, Some(Kind::Quota)) | (402, _) => {
            quota_exceeded(call, detail.as_deref())
        }
        (400, Some(Kind::Key)) | (401 | 403, _) => unauthorized(call, &status.as_u16().to_string()),
        (404, _) => ModelError::new(
            FailureCode::LlmNotFound,
            format!(
                "Provider `{provider}` does not know model `{model}` or the address (404): check `model` of the agent \
                 and `base_url` of [providers.{provider}]."
            ),
        ),
        (529, _) | (429 | 500..=599, Some(Kind::Overloaded)) => ModelError {
            code: FailureCode::LlmOverloaded,
            message: said("has too much to do"),
            retry_after: wait(),
        },
        (429, _) => ModelError {
            code: FailureCode::LlmRateLimited,
            message: said("limits the rate of calls"),
            retry_after: wait(),
        },
        (408 | 409 | 425 | 500..=599, _) => ModelError {
            code: FailureCode::LlmUnavailable,
            message: said("is not available"),
            retry_after: wait(),
        },
        (400 | 413 | 422, Some(Kind::TooLong)) => context_too_long(call),
        (300..=399, _) => ModelError::new(
            FailureCode::LlmBadRequest,
            format!(
                "Provider `{provider}` sends elsewhere ({status}): check `base_url` of [providers.{provider}]."
            ),
        ),
        _ => ModelError::new(FailureCode::LlmBadRequest, said("refused the request")),
    }
}

/// Returns the error of an error event in the middle of a stream.
pub(super) fn from_body(call: Call<'_>, body: &Value) -> ModelError {
    let error = inner_error(body);
    // OpenRouter and others put the HTTP status of the provider behind them into `code`.
    let status = error
        .get("code")
        .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    if let Some(status) =
        status.and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok())
        && (status.is_client_error() || status.is_server_error())
    {
        return from_status(call, status, &body.to_string(), &HeaderMap::new());
    }
    let detail = detail(body);
    let said = |text: &str| {
        format!(
            "Provider `{}` {text}{}",
            call.provider,
            quoted(detail.as_deref())
        )
    };
    match said::kind(body) {
        Some(Kind::TooLong) => return context_too_long(call),
        Some(Kind::Quota) => return quota_exceeded(call, detail.as_deref()),
        Some(Kind::Policy) => return policy(call, detail.as_deref()),
        Some(Kind::Key) => return unauthorized(call, "in the stream"),
        Some(Kind::Overloaded) => {
            return ModelError::new(FailureCode::LlmOverloaded, said("has too much to do"));
        }
        None => {}
    }
    let is = |words: &[&str]| names(error, words);
    if is(&[
        "authentication_error",
        "permission_error",
        "invalid_api_key",
        "unauthorized",
    ]) {
        unauthorized(call, "in the stream")
    } else if is(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "tokens",
        "requests",
    ]) {
        ModelError::new(
            FailureCode::LlmRateLimited,
            said("limits the rate of calls"),
        )
    } else if is(&["not_found_error", "model_not_found"]) {
        from_status(call, StatusCode::NOT_FOUND, "", &HeaderMap::new())
    } else if is(&[
        "invalid_request_error",
        "invalid_prompt",
        "request_too_large",
    ]) {
        ModelError::new(FailureCode::LlmBadRequest, said("refused the request"))
    } else {
        // api_error, server_error, and unknown types: a later call may succeed.
        unavailable(
            call,
            detail.as_deref().unwrap_or("it broke the reply off"),
            None,
        )
    }
}

fn unauthorized(call: Call<'_>, how: &str) -> ModelError {
    let provider = call.provider;
    ModelError::new(
        FailureCode::LlmUnauthorized,
        format!(
            "Provider `{provider}` refused the key ({how}): check the environment variable named by `api_key_env` of \
             [providers.{provider}], and that the key may use model `{}`.",
            call.model
        ),
    )
}

fn policy(call: Call<'_>, detail: Option<&str>) -> ModelError {
    content_policy(
        call.provider,
        detail.unwrap_or("the provider gives no reason."),
    )
}

fn quota_exceeded(call: Call<'_>, detail: Option<&str>) -> ModelError {
    let message = format!(
        "Provider `{}` takes no more calls of the account; check the account's plan and limits{}",
        call.provider,
        quoted(detail)
    );
    ModelError::new(FailureCode::LlmQuotaExceeded, message)
}

fn context_too_long(call: Call<'_>) -> ModelError {
    ModelError::new(
        FailureCode::LlmContextTooLong,
        format!(
            "The conversation is longer than model `{}` can read: set `context_window` of the agent to the model's \
             context window, or begin a new conversation.",
            call.model
        ),
    )
}

pub(super) fn unavailable(
    call: Call<'_>,
    reason: &str,
    retry_after: Option<Duration>,
) -> ModelError {
    let message = format!(
        "Provider `{}` is not available: {}.",
        call.provider,
        reason.trim_end_matches('.')
    );
    ModelError {
        code: FailureCode::LlmUnavailable,
        message,
        retry_after,
    }
}

pub(super) fn unreadable(call: Call<'_>, error: &dyn std::fmt::Display) -> ModelError {
    tracing::warn!(provider = call.provider, %error, "the model's reply cannot be read");
    let message = format!(
        "Provider `{}` sent a reply that cannot be read.",
        call.provider
    );
    ModelError::new(FailureCode::LlmInvalidResponse, message)
}

fn quoted(detail: Option<&str>) -> String {
    detail.map_or_else(|| ".".to_owned(), |detail| format!(": {detail}"))
}

/// Returns the innermost reason. The outer reasons only report the failed request, and name the URL.
fn root(error: &dyn StdError) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string().chars().take(MAX_DETAIL_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use everturn_proto::words::FailureCode;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Bodies of errors with the fields of real providers, and with random fields.
    fn bodies() -> impl Strategy<Value = Value> {
        const WORDS: [&str; 8] = [
            "insufficient_quota",
            "content_filter",
            "context_length_exceeded",
            "overloaded_error",
            "tokens",
            "429",
            "1e9s",
            "-3s",
        ];
        let leaf = prop_oneof![
            4 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
            1 => any::<String>().prop_map(Value::from),
            1 => any::<u64>().prop_map(Value::from),
            1 => Just(Value::Null),
        ];
        leaf.prop_recursive(4, 20, 4, |inner| {
            let name = "error|message|type|code|status|details|retryDelay|reason|violations|quotaId|innererror";
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                3 => prop::collection::hash_map(name, inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_answer_of_a_provider_is_an_error_with_a_code(
            body in bodies(), text in "\\PC{0,2000}", status in 300_u16..600,
        ) {
            let call = Call { provider: "p", model: "m" };
            let status = StatusCode::from_u16(status).unwrap();
            let headers = HeaderMap::new();
            let errors = [
                from_body(call, &body),
                from_status(call, status, &body.to_string(), &headers),
                from_status(call, status, &text, &headers),
                content_policy("p", &text),
            ];
            for error in errors {
                prop_assert!(FailureCode::ALL.contains(&error.code), "{}", error.code);
                prop_assert!(error.message.chars().count() <= MAX_DETAIL_CHARS + 300, "{}", error.message);
                let wait = error.retry_after.unwrap_or_default();
                prop_assert!(wait <= Duration::from_mins(10), "{:?}", wait);
            }
        }
    }
}
