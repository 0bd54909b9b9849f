//! From what a provider answers, or does not answer, to the error of a model call, whose code says what to do about it.
//!
//! A key never gets into a message: ours are written without it, and `Endpoint::without_key` cuts out what a provider
//! repeats of it. Must not be here: the libraries of one adapter.

use std::{error::Error as StdError, time::Duration};

use everturn_proto::words::failure as code;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::ModelError;
use crate::retry_after;

/// Characters of a provider's own message that are kept.
const MAX_DETAIL_CHARS: usize = 500;
/// How providers say that the context is too long, beside OpenAI's code. It is said nowhere but in the body of a 400.
const TOO_LONG: [&str; 6] = [
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "context window",
    "available context size",
];

/// Which call it was, for messages.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

pub(super) fn unknown_provider(provider: &str) -> ModelError {
    ModelError::new(
        code::LLM_NOT_FOUND,
        format!(
            "There is no provider `{provider}` in this worker's configuration; add [providers.{provider}]."
        ),
    )
}

pub(super) fn stream_cut(provider: &str) -> ModelError {
    ModelError::new(
        code::LLM_STREAM_CUT,
        format!("The stream of provider `{provider}` ended before the reply did."),
    )
}

pub(super) fn from_reqwest(call: Call<'_>, error: &reqwest::Error) -> ModelError {
    if error.is_timeout() {
        return unavailable(call, "it sent nothing for too long", None);
    }
    if error.is_builder() {
        let message = format!(
            "The request to provider `{}` could not be made: {}.",
            call.provider,
            root(error)
        );
        return ModelError::new(code::LLM_BAD_REQUEST, message);
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
    match status.as_u16() {
        401 | 403 => unauthorized(call, &status.as_u16().to_string()),
        404 => ModelError::new(
            code::LLM_NOT_FOUND,
            format!(
                "Provider `{provider}` does not know model `{model}` or the address (404): check `model` of the agent \
                 and `base_url` of [providers.{provider}]."
            ),
        ),
        402 => quota_exceeded(call, detail.as_deref()),
        429 if names(inner_error(&body), &QUOTA) => quota_exceeded(call, detail.as_deref()),
        429 => ModelError {
            code: code::LLM_RATE_LIMITED,
            message: said("limits the rate of calls"),
            retry_after: retry_after::from_headers(headers),
        },
        408 | 409 | 425 | 500..=599 => ModelError {
            code: code::LLM_UNAVAILABLE,
            message: said("is not available"),
            retry_after: retry_after::from_headers(headers),
        },
        400 | 413 | 422 if is_too_long(&body, detail.as_deref()) => context_too_long(call),
        300..=399 => ModelError::new(
            code::LLM_BAD_REQUEST,
            format!(
                "Provider `{provider}` sends elsewhere ({status}): check `base_url` of [providers.{provider}]."
            ),
        ),
        _ => ModelError::new(code::LLM_BAD_REQUEST, said("refused the request")),
    }
}

/// An error that came inside a stream that had begun well.
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
    if is_too_long(body, detail.as_deref()) {
        return context_too_long(call);
    }
    let said = |text: &str| {
        format!(
            "Provider `{}` {text}{}",
            call.provider,
            quoted(detail.as_deref())
        )
    };
    let is = |words: &[&str]| names(error, words);
    if is(&QUOTA) {
        quota_exceeded(call, detail.as_deref())
    } else if is(&[
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
        ModelError::new(code::LLM_RATE_LIMITED, said("limits the rate of calls"))
    } else if is(&["not_found_error", "model_not_found"]) {
        from_status(call, StatusCode::NOT_FOUND, "", &HeaderMap::new())
    } else if is(&[
        "invalid_request_error",
        "invalid_prompt",
        "request_too_large",
    ]) {
        ModelError::new(code::LLM_BAD_REQUEST, said("refused the request"))
    } else {
        // overloaded_error, api_error, server_error, and what nobody knows: a later call may do better.
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
        code::LLM_UNAUTHORIZED,
        format!(
            "Provider `{provider}` refused the key ({how}): check the environment variable named by `api_key_env` of \
             [providers.{provider}], and that the key may use model `{}`.",
            call.model
        ),
    )
}

/// True when the error's type or code is one of these words.
fn names(error: &Value, words: &[&str]) -> bool {
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    [word("type"), word("code")]
        .iter()
        .flatten()
        .any(|word| words.contains(word))
}

/// The error itself, which some providers wrap once more.
fn inner_error(body: &Value) -> &Value {
    body.get("error")
        .filter(|error| error.is_object())
        .unwrap_or(body)
}

/// What providers name an error that says that the account may make no more calls. Its status is that of a rate limit,
/// but waiting does not help. The words are OpenAI's and Anthropic's.
const QUOTA: [&str; 3] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
];

fn quota_exceeded(call: Call<'_>, detail: Option<&str>) -> ModelError {
    let message = format!(
        "Provider `{}` takes no more calls of this account; check its plan and its limits{}",
        call.provider,
        quoted(detail)
    );
    ModelError::new(code::LLM_QUOTA_EXCEEDED, message)
}

fn context_too_long(call: Call<'_>) -> ModelError {
    ModelError::new(
        code::LLM_CONTEXT_TOO_LONG,
        format!(
            "The conversation is longer than model `{}` can read: lower `max_context_messages` of the agent, or begin \
             a new conversation.",
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
        code: code::LLM_UNAVAILABLE,
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
    ModelError::new(code::LLM_INVALID_RESPONSE, message)
}

/// The provider's own message, from the places where providers commonly put it.
fn detail(body: &Value) -> Option<String> {
    let places = ["/error/message", "/message", "/error", "/detail"];
    let text = places
        .into_iter()
        .find_map(|place| body.pointer(place)?.as_str())?;
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_DETAIL_CHARS)
        .collect();
    (!text.trim().is_empty()).then_some(text)
}

fn quoted(detail: Option<&str>) -> String {
    detail.map_or_else(|| ".".to_owned(), |detail| format!(": {detail}"))
}

fn is_too_long(body: &Value, detail: Option<&str>) -> bool {
    let code = ["/error/code", "/error/type", "/code", "/type"]
        .into_iter()
        .filter_map(|place| body.pointer(place)?.as_str());
    let said = detail.unwrap_or_default().to_lowercase();
    code.into_iter().any(|code| code == TOO_LONG[0])
        || TOO_LONG.iter().any(|words| said.contains(words))
}

/// The innermost reason. The outer ones only say that sending failed, and name the URL.
fn root(error: &dyn StdError) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string().chars().take(MAX_DETAIL_CHARS).collect()
}
