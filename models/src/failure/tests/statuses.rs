//! Answers with an HTTP error.

use super::*;

#[test]
fn the_words_say_more_than_the_status() {
    let said = |words: &str| json!({"error": {"message": words}}).to_string();
    let coded = |code: &str| json!({"error": {"message": "Why.", "code": code}}).to_string();
    for (at, body, expected) in [
        (
            429,
            coded("insufficient_quota"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            403,
            coded("insufficient_user_quota"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            429,
            coded("exceeded_current_quota_error"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            500,
            coded("insufficient_quota"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            400,
            said("Your credit balance is too low to access the API."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            403,
            said("Your team has used all available credits."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            429,
            said("You exceeded your current quota, please check your plan"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            429,
            said("Insufficient balance or no resource package. Please recharge."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            429,
            said("Rate limit exceeded: free-models-per-day. Add 10 credits to go on"),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            429,
            said("Too many tokens per day, please wait before trying again."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            402,
            said("This request requires more credits, or fewer max_tokens."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            402,
            said("Prompt tokens limit exceeded: 38017 > 5284."),
            FailureCode::LlmQuotaExceeded,
        ),
        (
            400,
            coded("tool_use_failed"),
            FailureCode::LlmInvalidResponse,
        ),
        (
            400,
            coded("json_validate_failed"),
            FailureCode::LlmInvalidResponse,
        ),
        (
            400,
            said("Tool call validation failed: attempted to call tool x"),
            FailureCode::LlmInvalidResponse,
        ),
        (
            400,
            said("invalid tool call arguments"),
            FailureCode::LlmInvalidResponse,
        ),
        (
            500,
            said("error parsing tool call: raw='{', err=unexpected end"),
            FailureCode::LlmInvalidResponse,
        ),
        (
            500,
            said("Failed to parse tool call arguments as JSON"),
            FailureCode::LlmInvalidResponse,
        ),
        (400, coded("content_filter"), FailureCode::LlmContentPolicy),
        (
            400,
            said("triggering Azure OpenAI's content management policy."),
            FailureCode::LlmContentPolicy,
        ),
        (
            400,
            coded("data_inspection_failed"),
            FailureCode::LlmContentPolicy,
        ),
        (
            400,
            coded("DataInspectionFailed"),
            FailureCode::LlmContentPolicy,
        ),
        (
            400,
            said("Output data may contain inappropriate content."),
            FailureCode::LlmContentPolicy,
        ),
        (
            400,
            said("Content Exists Risk"),
            FailureCode::LlmContentPolicy,
        ),
        (
            403,
            said("x requires moderation on y. Your input was flagged for violence"),
            FailureCode::LlmContentPolicy,
        ),
        (
            500,
            said("litellm.ContentPolicyViolationError: No."),
            FailureCode::LlmContentPolicy,
        ),
        (
            503,
            said("The model is overloaded. Please try again later."),
            FailureCode::LlmOverloaded,
        ),
        (
            429,
            coded("engine_overloaded_error"),
            FailureCode::LlmOverloaded,
        ),
        (
            429,
            said("Service tier capacity exceeded for this model."),
            FailureCode::LlmOverloaded,
        ),
        (
            400,
            said("There are no instances available for the model."),
            FailureCode::LlmOverloaded,
        ),
        (
            503,
            said("Model x is currently loading"),
            FailureCode::LlmUnavailable,
        ),
        (
            429,
            said("Model is not ready for inference. Wait and try again"),
            FailureCode::LlmUnavailable,
        ),
        (
            400,
            said("The model is warming up."),
            FailureCode::LlmUnavailable,
        ),
        (
            400,
            said("Incorrect API key provided"),
            FailureCode::LlmUnauthorized,
        ),
        (
            400,
            said("API key not valid. Please pass a valid API key."),
            FailureCode::LlmUnauthorized,
        ),
        (
            400,
            coded("ThrottlingException"),
            FailureCode::LlmRateLimited,
        ),
        (403, coded("rateLimitExceeded"), FailureCode::LlmRateLimited),
        (
            500,
            said("litellm.RateLimitError: Too slow."),
            FailureCode::LlmRateLimited,
        ),
        (400, coded("model_not_found"), FailureCode::LlmNotFound),
        (
            404,
            said("No endpoints found matching your data policy"),
            FailureCode::LlmNotFound,
        ),
        (
            400,
            said("registry.ollama.ai/library/gemma:latest does not support tools"),
            FailureCode::LlmBadRequest,
        ),
        (
            400,
            said("Extra inputs are not permitted, field: 'stream_options'"),
            FailureCode::LlmBadRequest,
        ),
        (
            400,
            said("Unexpected role 'user' after role 'tool'"),
            FailureCode::LlmBadRequest,
        ),
    ] {
        let body: Value = serde_json::from_str(&body).unwrap();
        let words = body["error"]["message"].as_str().unwrap();
        check(
            &status(at, &body.to_string()),
            &expected,
            words,
            &body.to_string(),
        );
    }
}

#[test]
fn a_status_decides_when_the_words_do_not() {
    for (at, expected) in [
        (400, FailureCode::LlmBadRequest),
        (401, FailureCode::LlmUnauthorized),
        (402, FailureCode::LlmQuotaExceeded),
        (403, FailureCode::LlmUnauthorized),
        (404, FailureCode::LlmNotFound),
        (405, FailureCode::LlmBadRequest),
        (408, FailureCode::LlmUnavailable),
        (409, FailureCode::LlmUnavailable),
        (410, FailureCode::LlmNotFound),
        (413, FailureCode::LlmBadRequest),
        (422, FailureCode::LlmBadRequest),
        (425, FailureCode::LlmUnavailable),
        (429, FailureCode::LlmRateLimited),
        (500, FailureCode::LlmUnavailable),
        (503, FailureCode::LlmUnavailable),
        (520, FailureCode::LlmUnavailable),
        (524, FailureCode::LlmUnavailable),
        (529, FailureCode::LlmOverloaded),
    ] {
        for (body, words) in [
            ("", ""),
            ("<html><title>A page</title></html>", "A page"),
            (r#"{"error": {"message": "Some words."}}"#, "Some words."),
            ("plain words", "plain words"),
        ] {
            let error = status(at, body);
            check(&error, &expected, words, body);
            assert!(error.message.contains(&at.to_string()), "{error}");
        }
    }
}

#[test]
fn messages_name_the_remedy() {
    for (at, body, words) in [
        (307, "", "`base_url`"),
        (
            308,
            "<html><title>308 Permanent Redirect</title></html>",
            "`base_url`",
        ),
        (
            413,
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
            "body is too large (413)",
        ),
        (
            403,
            "<!DOCTYPE html><html><title>Attention Required! | Cloudflare</title></html>",
            "proxies and firewalls",
        ),
        (
            403,
            "<title>Attention Required! | Cloudflare</title>",
            "Attention Required! | Cloudflare",
        ),
        (
            403,
            r#"{"error": {"message": "You have insufficient permissions for this operation."}}"#,
            "insufficient perm",
        ),
        (
            404,
            r#"{"error": {"message": "No endpoints found that support tool use.", "code": 404}}"#,
            "support tool use",
        ),
        (
            404,
            r#"{"error": {"message": "The model `x` does not exist."}}"#,
            "check `model` of the agent",
        ),
        (
            502,
            "<html><body>502 Bad Gateway</body></html>",
            "502 Bad Gateway",
        ),
    ] {
        assert!(
            status(at, body).message.contains(words),
            "{at}: {}",
            status(at, body)
        );
    }
    let refused = status(
        401,
        r#"{"error": {"message": "Incorrect API key provided: sk-ab***yz."}}"#,
    );
    assert!(!refused.message.contains("yz"), "{refused}");
}
