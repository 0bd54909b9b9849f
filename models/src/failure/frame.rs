//! Tells an error within a stream from a part of a reply, on every wire.

use serde_json::Value;

use super::shape::is_blank;

/// The keys of the parts of a reply.
const REPLY: [&str; 6] = [
    "choices",
    "candidates",
    "output",
    "content",
    "delta",
    "response",
];
/// The keys with an error. No part of a reply has a value under these keys.
const ERROR: [&str; 7] = [
    "/error",
    "/errors",
    "/error_code",
    "/error_msg",
    "/error_message",
    "/errorMessage",
    "/choices/0/error",
];
/// The keys with the words of an error without other signs.
const WORDS: [&str; 3] = ["detail", "message", "msg"];
/// The parts of the types by which an error without other signs names itself.
const TYPES: [&str; 6] = [
    "error",
    "exception",
    "fail",
    "invalid",
    "denied",
    "about:blank",
];
/// The codes of a success.
const SUCCESS: [&str; 5] = ["0", "200", "ok", "success", "succeeded"];

/// True for a frame that reports an error, in the shapes of every provider. A frame with parts of a reply is no error,
/// unless the frame names an error.
pub(crate) fn is_error(frame: &Value) -> bool {
    let has = |path: &str| frame.pointer(path).is_some_and(|value| !is_blank(value));
    let is_reply = REPLY.iter().any(|key| !is_blank(&frame[*key]));
    let names_error = frame["object"] == "error" || frame["type"] == "error";
    // MiniMax sends a state with each chunk.
    let has_bad_state = has("/base_resp/status_code");
    if names_error || has_bad_state || ERROR.iter().any(|path| has(path)) {
        return true;
    }
    // The events of two wires have a type, and Anthropic's `message_start` has an object as `message`.
    let may_be = frame["type"].as_str().is_none_or(is_error_type);
    let has_words = WORDS.iter().any(|key| {
        let value = &frame[*key];
        !is_blank(value) && (value.is_string() || *key == "detail")
    });
    !is_reply && may_be && has_words && !is_success(frame)
}

/// True for the type of an error without other signs.
fn is_error_type(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    TYPES.iter().any(|part| word.contains(part))
}

/// True for a frame whose code or state reports a success.
fn is_success(frame: &Value) -> bool {
    ["code", "status", "status_code"].iter().any(|key| {
        let code = match &frame[*key] {
            Value::String(code) => code.to_ascii_lowercase(),
            Value::Number(code) => code.to_string(),
            _ => return false,
        };
        SUCCESS.contains(&code.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_of_every_provider_are_errors() {
        for frame in [
            json!({"error": {"message": "No.", "type": "server_error"}}),
            json!({"error": "out of memory"}),
            json!({"error": true}),
            json!({"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}),
            json!({"type": "error", "error": {"details": null, "type": "overloaded_error", "message": "Overloaded"}}),
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "sequence_number": 2}),
            json!({"type": "error"}),
            json!({"object": "error", "message": "No.", "type": "BadRequestError", "param": null, "code": 400}),
            json!({"type": "BadRequestError", "message": "No."}),
            json!({"message": "ThrottlingException"}),
            json!({"detail": "No."}),
            json!({"detail": [{"loc": ["body"], "msg": "Field required"}]}),
            json!({"code": "InvalidApiKey", "message": "No.", "request_id": "x"}),
            json!({"code": 1305, "msg": "Busy."}),
            json!({"error_code": 336_003, "error_msg": "No."}),
            json!({"errors": [{"message": "No."}]}),
            json!({"choices": [], "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
            json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                "error": {"code": "server_error", "message": "Provider disconnected"}}),
            json!({"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "No."}}]}),
            json!({"type": "about:blank", "title": "Bad Gateway", "status": 502, "detail": "No."}),
        ] {
            assert!(is_error(&frame), "{frame}");
        }
    }

    #[test]
    fn parts_of_a_reply_are_no_errors() {
        for frame in [
            json!({"choices": [{"index": 0, "delta": {"content": "x"}}], "error": null}),
            json!({"choices": [{"index": 0, "delta": {"content": "x"}, "error": null}], "error": {}}),
            json!({"choices": [{"index": 0, "delta": {"content": "x"}}], "error": ""}),
            json!({"choices": [{"index": 0, "delta": {"content": "x"}}], "error": false}),
            json!({"choices": [{"index": 0, "delta": {"content": "x"}}], "error": {"code": 0, "message": ""}}),
            json!({"choices": [], "usage": {"total_tokens": 3}, "errors": []}),
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "error"}}], "message": "x"}),
            json!({"choices": [{"delta": {"content": "x"}}], "base_resp": {"status_code": 0, "status_msg": "success"}}),
            json!({"id": "x", "object": "chat.completion.chunk"}),
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "content": []}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "error"}}),
            json!({"type": "message_stop"}),
            json!({"type": "ping", "message": "alive"}),
            json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "error": null}}),
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}}),
            json!({"type": "response.completed", "response": {"status": "completed", "error": null}, "error": null}),
            json!({"type": "response.output_text.delta", "delta": "error", "sequence_number": 1}),
            json!({"candidates": [{"content": {"parts": [{"text": "error"}]}}]}),
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            json!({"usageMetadata": {"totalTokenCount": 3}, "modelVersion": "x"}),
            json!({"model": "x", "message": {"role": "assistant", "content": "hi"}, "done": false}),
            json!({"code": 200, "msg": "success"}),
            json!({"code": "", "message": "", "output": {"text": "x"}}),
            json!({"status": "OK", "message": "warm"}),
            json!({}),
            json!(null),
            json!("text"),
            json!([{"error": "in a list"}]),
        ] {
            assert!(!is_error(&frame), "{frame}");
        }
    }
}
