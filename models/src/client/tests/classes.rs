//! Every class of failure, in the words of each kind of provider: as a status and inside a stream.

// Literals read better in a test than references to them.
#![allow(clippy::needless_pass_by_value)]

use std::time::Duration;

use everturn_proto::words::FailureCode;
use serde_json::{Value, json};

use super::{KEY, Script, ask};
use crate::{error::ModelError, provider::ProviderKind};

async fn fail(kind: ProviderKind, script: Script) -> ModelError {
    let (server, (_, reply)) = ask(kind, script).await;
    assert_eq!(server.seen().len(), 1, "nobody but the engine retries");
    let error = reply.unwrap_err();
    assert!(!error.message.contains(KEY), "{error}");
    error
}

/// What providers of this kind send as an error.
fn body(kind: ProviderKind, word: &str, message: &str) -> Value {
    match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
            json!({"error": {"message": message, "type": word, "code": word}})
        }
        ProviderKind::Anthropic => {
            json!({"type": "error", "error": {"type": word, "message": message}})
        }
        ProviderKind::Gemini => json!({"error": {"message": message, "status": word}}),
    }
}

/// A kind of provider, its status, the word and the message of its error, and the class.
type Case = (ProviderKind, u16, &'static str, &'static str, FailureCode);

const CASES: &[Case] = &[
    (
        ProviderKind::OpenAi,
        429,
        "insufficient_quota",
        "You exceeded your current quota.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        ProviderKind::Azure,
        429,
        "insufficient_quota",
        "You exceeded your current quota.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        ProviderKind::Anthropic,
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the API.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        ProviderKind::OpenAi,
        429,
        "rate_limit_exceeded",
        "Rate limit reached.",
        FailureCode::LlmRateLimited,
    ),
    (
        ProviderKind::Azure,
        429,
        "rate_limit_exceeded",
        "Rate limit reached.",
        FailureCode::LlmRateLimited,
    ),
    (
        ProviderKind::Anthropic,
        429,
        "rate_limit_error",
        "This would exceed your rate limit.",
        FailureCode::LlmRateLimited,
    ),
    (
        ProviderKind::OpenAi,
        400,
        "context_length_exceeded",
        "Too long.",
        FailureCode::LlmContextTooLong,
    ),
    (
        ProviderKind::Azure,
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8 tokens.",
        FailureCode::LlmContextTooLong,
    ),
    (
        ProviderKind::Anthropic,
        400,
        "invalid_request_error",
        "prompt is too long: 209000 tokens > 200000 maximum",
        FailureCode::LlmContextTooLong,
    ),
    (
        ProviderKind::Anthropic,
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
        FailureCode::LlmContextTooLong,
    ),
    (
        ProviderKind::Gemini,
        400,
        "INVALID_ARGUMENT",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        FailureCode::LlmContextTooLong,
    ),
    (
        ProviderKind::OpenAi,
        400,
        "content_policy_violation",
        "Your request was rejected.",
        FailureCode::LlmContentPolicy,
    ),
    (
        ProviderKind::Azure,
        400,
        "content_filter",
        "The response was filtered due to the prompt.",
        FailureCode::LlmContentPolicy,
    ),
    (
        ProviderKind::Anthropic,
        400,
        "invalid_request_error",
        "Output blocked by content filtering policy",
        FailureCode::LlmContentPolicy,
    ),
    (
        ProviderKind::OpenAi,
        503,
        "server_overloaded",
        "Slow down.",
        FailureCode::LlmOverloaded,
    ),
    (
        ProviderKind::Azure,
        529,
        "",
        "Slow down.",
        FailureCode::LlmOverloaded,
    ),
    (
        ProviderKind::Anthropic,
        529,
        "overloaded_error",
        "Overloaded",
        FailureCode::LlmOverloaded,
    ),
    (
        ProviderKind::Gemini,
        503,
        "UNAVAILABLE",
        "The model is overloaded. Please try again later.",
        FailureCode::LlmOverloaded,
    ),
    (
        ProviderKind::OpenAi,
        401,
        "invalid_api_key",
        "Incorrect key.",
        FailureCode::LlmUnauthorized,
    ),
    (
        ProviderKind::Azure,
        401,
        "",
        "Access denied.",
        FailureCode::LlmUnauthorized,
    ),
    (
        ProviderKind::Anthropic,
        401,
        "authentication_error",
        "invalid x-api-key",
        FailureCode::LlmUnauthorized,
    ),
    (
        ProviderKind::Gemini,
        403,
        "PERMISSION_DENIED",
        "No.",
        FailureCode::LlmUnauthorized,
    ),
    (
        ProviderKind::Gemini,
        404,
        "NOT_FOUND",
        "models/x is not found.",
        FailureCode::LlmNotFound,
    ),
    (
        ProviderKind::Anthropic,
        404,
        "not_found_error",
        "model: x",
        FailureCode::LlmNotFound,
    ),
    (
        ProviderKind::Gemini,
        400,
        "INVALID_ARGUMENT",
        "Invalid JSON payload received.",
        FailureCode::LlmBadRequest,
    ),
    (
        ProviderKind::Anthropic,
        500,
        "api_error",
        "Internal server error",
        FailureCode::LlmUnavailable,
    ),
    (
        ProviderKind::Gemini,
        504,
        "DEADLINE_EXCEEDED",
        "Deadline expired.",
        FailureCode::LlmUnavailable,
    ),
];

#[tokio::test]
async fn as_a_status() {
    for (kind, status, word, message, expected) in CASES.iter().cloned() {
        let script = Script::status(status, body(kind, word, message));
        let error = fail(kind, script).await;
        assert_eq!(error.code, expected, "{kind:?} {message}");
        let is_retryable = matches!(
            expected,
            FailureCode::LlmRateLimited | FailureCode::LlmOverloaded | FailureCode::LlmUnavailable
        );
        assert_eq!(error.is_retryable(), is_retryable, "{message}");
    }
}

#[tokio::test]
async fn inside_a_stream() {
    for (kind, status, word, message, expected) in CASES.iter().cloned() {
        let mut body = body(kind, word, message);
        let script = match kind {
            ProviderKind::Anthropic => Script::named([body]),
            ProviderKind::OpenAi | ProviderKind::Azure if word.is_empty() => continue,
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
                Script::sse([body])
            }
            ProviderKind::Gemini => {
                body["error"]["code"] = status.into();
                Script::sse([body])
            }
        };
        let error = fail(kind, script).await;
        assert_eq!(error.code, expected, "{kind:?} {message}");
    }
}

#[tokio::test]
async fn a_stop_because_of_the_content_is_the_content_policy() {
    let openai = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]});
    let openai = || Script::sse([openai.to_string(), "[DONE]".to_owned()]);
    let anthropic = Script::named([
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]);
    for (kind, script, word) in [
        (ProviderKind::OpenAi, openai(), "content_filter"),
        (ProviderKind::Azure, openai(), "content_filter"),
        (ProviderKind::Anthropic, anthropic, "refusal"),
    ] {
        let error = fail(kind, script).await;
        assert_eq!(
            (error.code.clone(), error.is_retryable()),
            (FailureCode::LlmContentPolicy, false)
        );
        assert!(error.message.contains(word), "{error}");
    }
    let broken = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "insufficient_system_resource"}]});
    let broken = Script::sse([broken.to_string(), "[DONE]".to_owned()]);
    let error = fail(ProviderKind::OpenAi, broken).await;
    assert_eq!(error.code, FailureCode::LlmUnavailable);
}

#[tokio::test]
async fn geminis_details_say_more_than_its_status() {
    let error = |status: u16, details: Value| {
        let error = json!({"code": status, "message": "You exceeded your current quota.", "details": details});
        Script::status(status, json!({"error": error}))
    };
    let quota = |id: &str| json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]});
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38.5s"});

    let minute = error(
        429,
        json!([quota("GenerateRequestsPerMinutePerProjectPerModel"), retry]),
    );
    let failed = fail(ProviderKind::Gemini, minute).await;
    assert_eq!(failed.code, FailureCode::LlmRateLimited);
    assert_eq!(failed.retry_after, Some(Duration::from_millis(38_500)));

    let day = error(
        429,
        json!([
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            retry
        ]),
    );
    assert_eq!(
        fail(ProviderKind::Gemini, day).await.code,
        FailureCode::LlmQuotaExceeded
    );

    let key = error(
        400,
        json!([{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]),
    );
    assert_eq!(
        fail(ProviderKind::Gemini, key).await.code,
        FailureCode::LlmUnauthorized
    );

    for nonsense in ["-5s", "soon", "1e300s", "NaNs"] {
        let retry = json!({"retryDelay": nonsense});
        let wait = fail(ProviderKind::Gemini, error(429, json!([retry])))
            .await
            .retry_after;
        assert!(
            wait.is_none_or(|wait| wait <= Duration::from_mins(10)),
            "{nonsense}"
        );
    }
}

#[tokio::test]
async fn every_kind_is_waited_for_as_long_as_it_asks() {
    for kind in ProviderKind::ALL {
        for status in [429, 503, 529] {
            for (header, value) in [("retry-after", "7"), ("retry-after-ms", "7000")] {
                let script = Script::status(status, "{}").header(header, value);
                let error = fail(kind, script).await;
                assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{kind:?}");
            }
        }
    }
}

#[tokio::test]
async fn only_calls_that_cost_nothing_are_refused() {
    let busy = |status| Script::status(status, "{}");
    let kind = ProviderKind::OpenAi;
    for status in [401, 404, 429, 503, 529] {
        assert!(fail(kind, busy(status)).await.is_refused, "{status}");
    }
    for status in [408, 500, 502, 504] {
        assert!(!fail(kind, busy(status)).await.is_refused, "{status}");
    }
}

#[tokio::test]
async fn a_request_larger_than_a_minutes_limit_is_not_a_matter_of_time() {
    let message = "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested \
                   32000.";
    for status in [413, 429] {
        let kind = ProviderKind::OpenAi;
        let body = body(kind, "rate_limit_exceeded", message);
        let error = fail(kind, Script::status(status, body)).await;
        assert_eq!(error.code, FailureCode::LlmContextTooLong, "{error}");
        assert!(error.message.contains("Limit 30000"), "{error}");
    }
}
