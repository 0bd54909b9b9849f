//! Errors within a stream.

use super::*;

#[test]
fn the_code_the_type_or_the_words_decide() {
    let frame = |message: &str, kind: &str, code: Value| json!({"error": {"message": message, "type": kind, "code": code}});
    for (frame, expected) in [
        (
            frame("Why.", "server_error", Value::Null),
            FailureCode::LlmUnavailable,
        ),
        (
            frame("Why.", "api_error", Value::Null),
            FailureCode::LlmUnavailable,
        ),
        (
            frame("Why.", "something_new", json!(1305)),
            FailureCode::LlmUnavailable,
        ),
        (
            frame("Why.", "rate_limit_error", Value::Null),
            FailureCode::LlmRateLimited,
        ),
        (
            frame("Why.", "tokens", json!("rate_limit_exceeded")),
            FailureCode::LlmRateLimited,
        ),
        (frame("Why.", "", json!(429)), FailureCode::LlmRateLimited),
        (frame("Why.", "", json!("502")), FailureCode::LlmUnavailable),
        (
            frame("Why.", "None", json!("500")),
            FailureCode::LlmUnavailable,
        ),
        (frame("Why.", "", json!(401)), FailureCode::LlmUnauthorized),
        (
            frame("Why.", "invalid_request_error", Value::Null),
            FailureCode::LlmBadRequest,
        ),
        (
            frame("Why.", "BadRequestError", json!(400)),
            FailureCode::LlmBadRequest,
        ),
        (
            frame("Why.", "invalid_request_error", json!("invalid_api_key")),
            FailureCode::LlmUnauthorized,
        ),
        (
            frame("Why.", "authentication_error", Value::Null),
            FailureCode::LlmUnauthorized,
        ),
        (
            frame("Why.", "", json!("model_not_found")),
            FailureCode::LlmNotFound,
        ),
        (
            frame("Why.", "overloaded_error", Value::Null),
            FailureCode::LlmOverloaded,
        ),
        (
            frame("Why.", "", json!("server_is_overloaded")),
            FailureCode::LlmOverloaded,
        ),
        (
            frame("Why. We are at capacity.", "", Value::Null),
            FailureCode::LlmOverloaded,
        ),
        (
            frame("Why. The model is loading.", "", Value::Null),
            FailureCode::LlmUnavailable,
        ),
        (
            frame(
                "Why. You exceeded your current quota",
                "insufficient_quota",
                json!("insufficient_quota"),
            ),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            frame("Why. You exceeded your current quota", "", Value::Null),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            frame("Why.", "content_filter", Value::Null),
            FailureCode::LlmContentPolicy,
        ),
        (
            frame("Why.", "", json!("tool_use_failed")),
            FailureCode::LlmInvalidResponse,
        ),
    ] {
        check(&stream(&frame), &expected, "Why.", &frame.to_string());
    }
}

#[test]
fn every_shape_is_read() {
    for (frame, expected, words) in [
        (
            json!({"error": "Engine protocol predict request returned HTTP 400: out of memory"}),
            FailureCode::LlmUnavailable,
            "out of memory",
        ),
        (
            json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"}}),
            FailureCode::LlmUnavailable,
            "disconnected",
        ),
        (
            json!({"choices": [{"index": 0, "delta": {}, "error": {"code": 429, "message": "Slowly."}}]}),
            FailureCode::LlmRateLimited,
            "Slowly.",
        ),
        (
            json!({"type": "error", "error": {"details": null, "type": "overloaded_error", "message": "Overloaded"}}),
            FailureCode::LlmOverloaded,
            "Overloaded",
        ),
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slowly.", "sequence_number": 2}),
            FailureCode::LlmRateLimited,
            "Slowly.",
        ),
        (
            json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
            FailureCode::LlmOverloaded,
            "The model is overloaded.",
        ),
        (
            json!({"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
            FailureCode::LlmQuotaExceeded,
            "insufficient balance",
        ),
        (
            json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {
                "raw": "{\"error\":{\"message\":\"Please slow.\",\"code\":429}}", "provider_name": "Chutes"}}}),
            FailureCode::LlmRateLimited,
            "Provider returned error (Chutes): Please slow.",
        ),
        (
            json!({"error": true}),
            FailureCode::LlmUnavailable,
            "Provider `p` is not available",
        ),
        (
            json!({"error": {"x": "new"}}),
            FailureCode::LlmUnavailable,
            "\"new\"",
        ),
    ] {
        check(&stream(&frame), &expected, words, &frame.to_string());
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
