//! Errors behind a gateway, and the details of Gemini.

use super::*;

#[test]
fn an_error_behind_a_gateway_counts() {
    let raw = |raw: &str| {
        json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "N"}}})
            .to_string()
    };
    for (at, raw_error, expected) in [
        (
            400,
            r#"{"error":{"message":"Slow.","code":429}}"#,
            FailureCode::LlmRateLimited,
        ),
        (
            400,
            r#"{"error":{"message":"Down.","code":503}}"#,
            FailureCode::LlmUnavailable,
        ),
        (
            400,
            r#"{"error":{"message":"No.","code":"content_filter"}}"#,
            FailureCode::LlmContentPolicy,
        ),
        (400, "tool_use_failed", FailureCode::LlmInvalidResponse),
        (
            429,
            "x:free is temporarily rate-limited upstream. Please retry shortly",
            FailureCode::LlmRateLimited,
        ),
        (400, "some words", FailureCode::LlmBadRequest),
    ] {
        check(
            &status(at, &raw(raw_error)),
            &expected,
            "Provider returned error (N): ",
            raw_error,
        );
    }
}

#[test]
fn geminis_quota_of_a_day_is_told_from_its_quota_of_a_minute() {
    let error = |message: &str, quota: &str| {
        let violations = json!([{"violations": [{"quotaId": quota}]}]);
        let error = json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": violations});
        status(429, &json!({"error": error}).to_string()).code
    };
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    assert_eq!(
        error(quota, "GenerateRequestsPerMinutePerProject"),
        FailureCode::LlmRateLimited
    );
    assert_eq!(
        error(quota, "GenerateRequestsPerDayPerProject"),
        FailureCode::LlmQuotaExceeded
    );
    assert_eq!(
        error("Quota exceeded for metric: x, limit: 0, model: y", "x"),
        FailureCode::LlmQuotaExceeded
    );
    assert_eq!(
        error("Quota exceeded for metric: x, limit: 20, model: y", "x"),
        FailureCode::LlmRateLimited
    );
}
