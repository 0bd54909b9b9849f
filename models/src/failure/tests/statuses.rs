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
