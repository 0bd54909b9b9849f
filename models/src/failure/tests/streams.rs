//! Errors within a stream.

use super::*;

/// The words, the type and the code of an error, and the expected code of the failure.
const ERRORS: &[(&str, &str, &str, FailureCode)] = &[
    ("Why.", "server_error", "", FailureCode::LlmUnavailable),
    ("Why.", "api_error", "", FailureCode::LlmUnavailable),
    ("Why.", "something_new", "1305", FailureCode::LlmUnavailable),
    ("Why.", "rate_limit_error", "", FailureCode::LlmRateLimited),
    (
        "Why.",
        "tokens",
        "rate_limit_exceeded",
        FailureCode::LlmRateLimited,
    ),
    ("Why.", "", "429", FailureCode::LlmRateLimited),
    ("Why.", "", "502", FailureCode::LlmUnavailable),
    ("Why.", "None", "500", FailureCode::LlmUnavailable),
    ("Why.", "", "401", FailureCode::LlmUnauthorized),
    (
        "Why.",
        "invalid_request_error",
        "",
        FailureCode::LlmBadRequest,
    ),
    ("Why.", "BadRequestError", "400", FailureCode::LlmBadRequest),
    (
        "Why.",
        "invalid_request_error",
        "invalid_api_key",
        FailureCode::LlmUnauthorized,
    ),
    (
        "Why.",
        "authentication_error",
        "",
        FailureCode::LlmUnauthorized,
    ),
    ("Why.", "", "model_not_found", FailureCode::LlmNotFound),
    ("Why.", "overloaded_error", "", FailureCode::LlmOverloaded),
    (
        "Why.",
        "",
        "server_is_overloaded",
        FailureCode::LlmOverloaded,
    ),
    (
        "Why. We are at capacity.",
        "",
        "",
        FailureCode::LlmOverloaded,
    ),
    (
        "Why. The model is loading.",
        "",
        "",
        FailureCode::LlmUnavailable,
    ),
    (
        "Why. You exceeded your current quota",
        "insufficient_quota",
        "insufficient_quota",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        "Why. You exceeded your current quota",
        "",
        "",
        FailureCode::LlmQuotaExceeded,
    ),
    ("Why.", "content_filter", "", FailureCode::LlmContentPolicy),
    (
        "Why.",
        "",
        "tool_use_failed",
        FailureCode::LlmInvalidResponse,
    ),
];

#[test]
fn the_code_the_type_or_the_words_decide() {
    for (message, kind, code, expected) in ERRORS {
        let mut frame = json!({"error": {"message": message, "type": kind, "code": code}});
        check(&stream(&frame), expected, "Why.", &frame.to_string());
        frame["error"]["code"] = code.parse::<u64>().ok().into();
        if !frame["error"]["code"].is_null() || code.is_empty() {
            check(&stream(&frame), expected, "Why.", &frame.to_string());
        }
    }
}

/// An error, the expected code of the failure, and words of the message.
const SHAPES: &[(&str, FailureCode, &str)] = &[
    (
        r#"{"error": "Engine protocol predict request returned HTTP 400: out of memory"}"#,
        FailureCode::LlmUnavailable,
        "out of memory",
    ),
    (
        r#"{"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}], "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"}}"#,
        FailureCode::LlmUnavailable,
        "disconnected",
    ),
    (
        r#"{"choices": [{"index": 0, "delta": {}, "error": {"code": 429, "message": "Slowly."}}]}"#,
        FailureCode::LlmRateLimited,
        "Slowly.",
    ),
    (
        r#"{"type": "error", "error": {"details": null, "type": "overloaded_error", "message": "Overloaded"}}"#,
        FailureCode::LlmOverloaded,
        "Overloaded",
    ),
    (
        r#"{"type": "error", "code": "rate_limit_exceeded", "message": "Slowly.", "sequence_number": 2}"#,
        FailureCode::LlmRateLimited,
        "Slowly.",
    ),
    (
        r#"{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}"#,
        FailureCode::LlmOverloaded,
        "The model is overloaded.",
    ),
    (
        r#"{"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}"#,
        FailureCode::LlmQuotaExceeded,
        "insufficient balance",
    ),
    (
        r#"{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"error\":{\"message\":\"Please slow.\",\"code\":429}}", "provider_name": "Chutes"}}}"#,
        FailureCode::LlmRateLimited,
        "Provider returned error (Chutes): Please slow.",
    ),
    (
        r#"{"error": true}"#,
        FailureCode::LlmUnavailable,
        "Provider `p` is not available",
    ),
    (
        r#"{"error": {"x": "new"}}"#,
        FailureCode::LlmUnavailable,
        "\"new\"",
    ),
];

#[test]
fn every_shape_is_read() {
    for (frame, expected, words) in SHAPES {
        check(
            &stream(&serde_json::from_str(frame).unwrap()),
            expected,
            words,
            frame,
        );
    }
}

#[test]
fn a_text_in_place_of_a_stream_is_read() {
    for (text, has_begun, expected, words) in [
        (
            "<!doctype html><h1>Welcome to nginx</h1>",
            false,
            FailureCode::LlmBadRequest,
            "Welcome to nginx",
        ),
        ("hello", false, FailureCode::LlmBadRequest, "`base_url`"),
        (
            "Rate limit exceeded",
            false,
            FailureCode::LlmRateLimited,
            "Rate limit",
        ),
        (
            "prompt is too long",
            true,
            FailureCode::LlmContextTooLong,
            "prompt is too long",
        ),
        (
            "upstream connect error",
            true,
            FailureCode::LlmStreamCut,
            "upstream connect error",
        ),
    ] {
        check(
            &answer::not_a_stream(CALL, text, has_begun),
            &expected,
            words,
            text,
        );
    }
    let error = answer::unreadable_frame(CALL, "{nonsense}");
    check(
        &error,
        &FailureCode::LlmStreamCut,
        "{nonsense}",
        "a damaged frame",
    );
}
