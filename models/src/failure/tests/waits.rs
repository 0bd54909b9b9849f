//! The time that a provider asks to wait.

use reqwest::header::HeaderValue;

use super::*;

fn limited(body: &Value) -> Option<Duration> {
    let error = status(429, &body.to_string());
    assert_eq!(error.code, FailureCode::LlmRateLimited, "{error}");
    error.retry_after
}

/// The body of a 429, and the milliseconds to wait.
const BODIES: &[(&str, u64)] = &[
    (
        r#"{"error": {"message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.2s. Visit x.", "type": "tokens", "code": "rate_limit_exceeded"}}"#,
        1200,
    ),
    (
        r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.", "type": "requests", "code": "rate_limit_exceeded"}}"#,
        432_000,
    ),
    (
        r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: x, limit: 20\nPlease retry in 38.5s.", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}]}}"#,
        38_000,
    ),
    (
        r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 38.5s."}}"#,
        38_500,
    ),
    (
        r#"[{"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "2.5s"}]}}]"#,
        2500,
    ),
    (
        r#"{"error": {"code": "429", "message": "Requests to the ChatCompletions operation have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 22 seconds. Please go to https://aka.ms/oai/quotaincrease to increase the default rate limit."}}"#,
        22_000,
    ),
    (r#"{"message": "slow down", "retry_after": 3}"#, 3000),
    (
        r#"{"error": {"message": "x", "retry_after_ms": "250"}}"#,
        250,
    ),
    (
        r#"{"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "Please retry in 20s", "headers": {"Retry-After": "5"}}}}"#,
        5000,
    ),
    (
        r#"{"error": {"message": "Provider returned error", "metadata": {"raw": "{\"error\":{\"message\":\"x\",\"details\":[{\"retryDelay\":\"7s\"}]}}"}}}"#,
        7000,
    ),
];

#[test]
fn times_in_a_body_are_found() {
    for (body, millis) in BODIES {
        let body = serde_json::from_str(body).unwrap();
        assert_eq!(
            limited(&body),
            Some(Duration::from_millis(*millis)),
            "{body}"
        );
    }
    assert_eq!(limited(&json!({"message": "soon"})), None);
}

#[test]
fn headers_are_more_exact_than_words() {
    let headers: HeaderMap = [(
        "retry-after-ms".parse().unwrap(),
        HeaderValue::from_static("300"),
    )]
    .into_iter()
    .collect();
    let body = r#"{"error": {"message": "Please try again in 20s."}}"#;
    for status in [429, 503, 529] {
        let status = StatusCode::from_u16(status).unwrap();
        let error = answer::from_status(CALL, status, body, &headers);
        assert_eq!(error.retry_after, Some(Duration::from_millis(300)));
    }
}

#[test]
fn times_within_a_stream_count() {
    for frame in [
        json!({"error": {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1.2s."}}),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "No. Try again in 1.2 seconds"}}),
        json!({"error": {"code": 429, "message": "x", "details": [{"retryDelay": "1.2s"}]}}),
        json!({"error": {"code": 503, "message": "Busy", "retry_after": 1.2}}),
    ] {
        assert_eq!(
            stream(&frame).retry_after,
            Some(Duration::from_millis(1200)),
            "{frame}"
        );
    }
}

#[test]
fn an_error_that_does_not_pass_has_no_wait() {
    let error = status(
        402,
        r#"{"error": {"message": "No credit. Try again in 2s."}}"#,
    );
    assert_eq!(error.retry_after, None);
}
