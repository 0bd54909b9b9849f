//! Answers with an HTTP error whose words say more than the status.

use super::*;

/// A status, the code of the error, and the expected code of the failure.
const CODES: &[(u16, &str, FailureCode)] = &[
    (429, "insufficient_quota", FailureCode::LlmQuotaExceeded),
    (
        403,
        "insufficient_user_quota",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        429,
        "exceeded_current_quota_error",
        FailureCode::LlmQuotaExceeded,
    ),
    (500, "insufficient_quota", FailureCode::LlmQuotaExceeded),
    (400, "tool_use_failed", FailureCode::LlmInvalidResponse),
    (400, "json_validate_failed", FailureCode::LlmInvalidResponse),
    (400, "content_filter", FailureCode::LlmContentPolicy),
    (400, "data_inspection_failed", FailureCode::LlmContentPolicy),
    (400, "DataInspectionFailed", FailureCode::LlmContentPolicy),
    (429, "engine_overloaded_error", FailureCode::LlmOverloaded),
    (400, "ThrottlingException", FailureCode::LlmRateLimited),
    (403, "rateLimitExceeded", FailureCode::LlmRateLimited),
    (400, "model_not_found", FailureCode::LlmNotFound),
];

/// A status, the words of the error, and the expected code of the failure.
const WORDS: &[(u16, &str, FailureCode)] = &[
    (
        400,
        "Your credit balance is too low to access the API.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        403,
        "Your team has used all available credits.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        429,
        "You exceeded your current quota, please check your plan",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        429,
        "Insufficient balance or no resource package. Please recharge.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        429,
        "Rate limit exceeded: free-models-per-day. Add 10 credits to go on",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        429,
        "Too many tokens per day, please wait before trying again.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        402,
        "This request requires more credits, or fewer max_tokens.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        402,
        "Prompt tokens limit exceeded: 38017 > 5284.",
        FailureCode::LlmQuotaExceeded,
    ),
    (
        400,
        "Tool call validation failed: attempted to call tool x",
        FailureCode::LlmInvalidResponse,
    ),
    (
        400,
        "invalid tool call arguments",
        FailureCode::LlmInvalidResponse,
    ),
    (
        500,
        "error parsing tool call: raw='{', err=unexpected end",
        FailureCode::LlmInvalidResponse,
    ),
    (
        500,
        "Failed to parse tool call arguments as JSON",
        FailureCode::LlmInvalidResponse,
    ),
    (
        400,
        "triggering Azure OpenAI's content management policy.",
        FailureCode::LlmContentPolicy,
    ),
    (
        400,
        "Output data may contain inappropriate content.",
        FailureCode::LlmContentPolicy,
    ),
    (400, "Content Exists Risk", FailureCode::LlmContentPolicy),
    (
        403,
        "x requires moderation on y. Your input was flagged for violence",
        FailureCode::LlmContentPolicy,
    ),
    (
        500,
        "litellm.ContentPolicyViolationError: No.",
        FailureCode::LlmContentPolicy,
    ),
    (
        503,
        "The model is overloaded. Please try again later.",
        FailureCode::LlmOverloaded,
    ),
    (
        429,
        "Service tier capacity exceeded for this model.",
        FailureCode::LlmOverloaded,
    ),
    (
        400,
        "There are no instances available for the model.",
        FailureCode::LlmOverloaded,
    ),
    (
        503,
        "Model x is currently loading",
        FailureCode::LlmUnavailable,
    ),
    (
        429,
        "Model is not ready for inference. Wait and try again",
        FailureCode::LlmUnavailable,
    ),
    (400, "The model is warming up.", FailureCode::LlmUnavailable),
    (
        400,
        "Incorrect API key provided",
        FailureCode::LlmUnauthorized,
    ),
    (
        400,
        "API key not valid. Please pass a valid API key.",
        FailureCode::LlmUnauthorized,
    ),
    (
        500,
        "litellm.RateLimitError: Too slow.",
        FailureCode::LlmRateLimited,
    ),
    (
        404,
        "No endpoints found matching your data policy",
        FailureCode::LlmNotFound,
    ),
    (
        400,
        "registry.ollama.ai/library/gemma:latest does not support tools",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "Extra inputs are not permitted, field: 'stream_options'",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "Unexpected role 'user' after role 'tool'",
        FailureCode::LlmBadRequest,
    ),
];

#[test]
fn the_words_say_more_than_the_status() {
    for (at, code, expected) in CODES {
        let body = json!({"error": {"message": "Why.", "code": code}});
        check(&status(*at, &body.to_string()), expected, "Why.", code);
    }
    for (at, words, expected) in WORDS {
        let body = json!({"error": {"message": words}});
        check(&status(*at, &body.to_string()), expected, words, words);
    }
}
