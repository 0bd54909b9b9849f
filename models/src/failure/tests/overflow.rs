//! A context that is longer than the model's window, and errors with similar words.

use super::*;

/// Words for a context that is too long, of all providers.
const WORDS: &[&str] = &[
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens. Please reduce the length.",
    "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 in the messages, 1000 in \
     the completion). Please reduce the length of the messages or completion.",
    "The model returned the following errors: Input is too long for requested model.",
    "litellm.BadRequestError: BedrockException - {\"message\":\"Input is too long for requested model.\"}",
    "litellm.ContextWindowExceededError: too much",
    "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no \
     smaller than the number of text tokens.",
    "The input (12345 tokens) is longer than the model's context length (8192 tokens).",
    "prompt too long; exceeded max context length by 1234 tokens",
    "request (19185 tokens) exceeds the available context size (16384 tokens), try increasing it",
    "Context size has been exceeded.",
    "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of \
     only 4096 tokens, which is not enough.",
    "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a \
     larger context length, or provide a shorter input",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
    "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion. Current length is 8850 while limit is 8192",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 \
     `max_new_tokens`",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "invalid params, context window exceeds limit (2013)",
    "prompt is too long: 215000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and \
     try again",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the \
     input token count and try again.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4500",
    "Too many input tokens. Max input tokens: 8192, request input token count: 10000",
    "prompt token count of 140000 exceeds the limit of 128000",
    "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "Invalid request: the number of input tokens 5038 cannot exceed the total tokens limit 4096 for this model",
    "length of prompt_tokens (33000) must be less than max_seq_len (32768).",
    "Prompt length 5000 is greater than max_seq_len 4096",
    "Requested tokens (2100) exceed context window of 2048",
    "The estimated number of input and maximum output tokens (20000) exceeded this model context window limit (8192).",
    "You passed 35841 input tokens and requested 4096 output tokens. However, the model's context length is only 32768 \
     tokens, resulting in a maximum input length of 28672 tokens.",
    "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 32768 tokens and your \
     request has 30000 input tokens (4000 > 32768 - 30000).",
    "max_tokens must be at least 1, got -1234.",
    "input (3000 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
    "This endpoint's maximum context length is 200000 tokens. However, you requested about 212000 tokens (200000 of text \
     input, 12000 of tool input). Please reduce the length of either one.",
    "Total tokens of image and text exceed max message tokens",
    "Prompt exceeds max length",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "Prompt 超长",
    "The prompt is too large: 210000 tokens",
    "prompt length 5000 exceeds maximum 4096",
    "Conversation too long: please start a new chat",
    // No phrase of these sentences is in the table.
    "The total length of your request (9000 tokens) exceeds the allowed maximum (8192)",
    "This model supports at most 8192 tokens, but 9000 input tokens were given",
    "input tokens (9000) + max_tokens (1000) exceeds 8192",
    "Your messages resulted in 9000 tokens, more than 8192",
];

#[test]
fn every_wording_is_found_at_every_status() {
    for words in WORDS {
        let body = json!({"error": {"message": words, "type": "invalid_request_error"}});
        let code = &FailureCode::LlmContextTooLong;
        let begin = words.split(' ').next().unwrap();
        for at in [400, 413, 422] {
            check(&status(at, &body.to_string()), code, begin, words);
        }
        check(&stream(&body), code, begin, words);
        check(&stream(&json!({"error": words})), code, begin, words);
        check(&stream(&json!({"detail": words})), code, begin, words);
        check(&status(400, words), code, begin, words);
    }
}

/// A status, and the body of an error about a context that is too long.
const SHAPES: &[(u16, &str)] = &[
    (
        400,
        r#"{"message": "The model returned the following errors: Input is too long for requested model."}"#,
    ),
    (
        400,
        r#"{"object": "error", "message": "This model's maximum context length is 32768 tokens.", "type": "BadRequestError", "code": 400}"#,
    ),
    (400, r#"{"error": "prompt too long"}"#),
    (
        400,
        r#"{"detail": "This model's maximum context length is 32768 tokens."}"#,
    ),
    (
        400,
        r#"{"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 5."}"#,
    ),
    (
        400,
        r#"{"error_code": "BAD_REQUEST", "message": "{\"message\":\"Input is too long.\"}"}"#,
    ),
    (
        400,
        r#"[{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).", "status": "INVALID_ARGUMENT"}}]"#,
    ),
    (
        400,
        r#"{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"error\": {\"message\": \"This model's maximum context length is 32768 tokens.\", \"code\": 400}}", "provider_name": "Nvidia"}}}"#,
    ),
    (
        502,
        r#"{"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "{\"error\": {\"message\": \"This model's maximum context length is 32768 tokens.\", \"code\": 400}}"}}}"#,
    ),
    (
        400,
        r#"{"error": {"message": "No.", "type": "exceed_context_size_error"}}"#,
    ),
    (
        400,
        r#"{"error": {"message": "No.", "code": "model_max_prompt_tokens_exceeded"}}"#,
    ),
    (
        400,
        r#"{"error": {"message": "No.", "code": "context_length_exceeded"}}"#,
    ),
    (
        400,
        r#"{"error": {"type": "error", "error": {"code": "context_length_exceeded"}}}"#,
    ),
    (
        500,
        r#"{"error": {"message": "litellm.APIConnectionError: maximum context length exceeded", "code": "500"}}"#,
    ),
    (
        500,
        r#"{"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}"#,
    ),
    (503, r#"{"error": "prompt is too long"}"#),
    (
        413,
        r#"{"error": {"message": "Request too large for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.", "type": "tokens", "code": "rate_limit_exceeded"}}"#,
    ),
    (
        429,
        r#"{"error": {"message": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 42389. The input or output tokens must be reduced in order to run successfully.", "type": "tokens", "code": "rate_limit_exceeded"}}"#,
    ),
    (
        429,
        r#"{"error": {"message": "Rate limit reached (TPM): Limit 30,000, Used 0, Requested 42,389."}}"#,
    ),
];

#[test]
fn every_shape_is_read() {
    for (at, body) in SHAPES {
        let error = status(*at, body);
        check(
            &error,
            &FailureCode::LlmContextTooLong,
            "context_window",
            body,
        );
        assert!(!error.is_retryable() && error.retry_after.is_none());
    }
}

/// A status, words like the words for a context that is too long, and the expected code of the failure.
const SIMILAR: &[(u16, &str, FailureCode)] = &[
    (
        400,
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-x",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the \
             `context_window` for this model",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "'max_tokens' is too large: 40000. This model's maximum context length is 32768 tokens and your request has 50 \
             input tokens (40000 > 32768 - 50).",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "Range of max_tokens should be [1, 8192]",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is \
             lower than 4096.",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a \
             string with length 46 instead.",
        FailureCode::LlmBadRequest,
    ),
    (
        422,
        "max_tokens: Input should be greater than 0",
        FailureCode::LlmBadRequest,
    ),
    (
        429,
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
        FailureCode::LlmRateLimited,
    ),
    (
        429,
        "Too many tokens, please wait before trying again.",
        FailureCode::LlmRateLimited,
    ),
    (
        429,
        "Number of request tokens has exceeded your per-minute rate limit. Please reduce the prompt length or the maximum \
             tokens requested, or try again later.",
        FailureCode::LlmRateLimited,
    ),
    (
        429,
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
        FailureCode::LlmRateLimited,
    ),
    (
        400,
        "`max_tokens` must be greater than `thinking.budget_tokens` of the request",
        FailureCode::LlmBadRequest,
    ),
    (
        400,
        "messages.5.content.0.image: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        FailureCode::LlmBadRequest,
    ),
    (
        504,
        "Post \"http://x\": context deadline exceeded",
        FailureCode::LlmUnavailable,
    ),
    (500, "context canceled", FailureCode::LlmUnavailable),
    (413, "request entity too large", FailureCode::LlmBadRequest),
    (401, "The prompt is too long", FailureCode::LlmUnauthorized),
];

#[test]
fn similar_words_have_another_remedy() {
    for (at, words, expected) in SIMILAR {
        let body = json!({"error": {"message": words}});
        check(
            &status(*at, &body.to_string()),
            expected,
            &words[..15],
            words,
        );
    }
}
