//! The answers that a provider of any wire, or an attacker between, may send to a call.

use everturn_proto::{
    limits::{MAX_CITATIONS, MAX_TEXT_BYTES, MAX_TOOL_CALLS},
    words::FailureCode,
};
use proptest::{
    prelude::*,
    sample::{Index, select},
};

use super::tests::{read, split, values};
use crate::provider::ProviderKind;

/// The fields of frames, on every wire.
const NAMES: &[&str] = &[
    "type",
    "choices",
    "delta",
    "message",
    "content",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "finish_reason",
    "stop_reason",
    "content_block",
    "partial_json",
    "thinking",
    "signature",
    "input",
    "candidates",
    "parts",
    "text",
    "functionCall",
    "args",
    "thoughtSignature",
    "finishReason",
    "usage",
    "usageMetadata",
    "promptFeedback",
    "error",
    "code",
    "citations",
    "citation",
    "annotations",
    "groundingMetadata",
    "groundingChunks",
    "url",
    "title",
];
const WORDS: &[&str] = &[
    "text",
    "thinking",
    "tool_use",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "text_delta",
    "input_json_delta",
    "signature_delta",
    "weather",
    "stop",
    "length",
    "tool_calls",
    "end_turn",
    "max_tokens",
    "STOP",
    "MAX_TOKENS",
    "{\"a\":1}",
    "{",
    "<think>",
    "citations_delta",
    "https://a.example/",
];
/// Frames that lead a reader to its calls.
const FRAMES: &[&str] = &[
    r#"{"choices":[{"delta":{"content":"Hi <thi"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":7,"id":"a","function":{"name":"weather","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}"#,
    r#"{"type":"content_block_start","index":9,"content_block":{"type":"tool_use","id":"a","name":"weather"}}"#,
    r#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":7}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#,
    r#"{"error":{"code":529,"message":"no"}}"#,
    "[DONE]",
];

/// A part of a body: an event, a line, or any bytes.
fn parts() -> impl Strategy<Value = Vec<u8>> {
    let event = |data: String| format!("data: {data}\n\n").into_bytes();
    prop_oneof![
        4 => values(NAMES, WORDS).prop_map(move |value| event(value.to_string())),
        6 => select(FRAMES).prop_map(move |frame| event(frame.to_owned())),
        1 => select(FRAMES).prop_map(|frame| frame.as_bytes().to_vec()),
        1 => "(data: ?|event: |:|\r|\n|\\{|\\[|\"|\\\\ud83d|NaN|é){0,9}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_a_reply_within_the_limits_or_an_error_with_a_code(
        parts in prop::collection::vec(parts(), 0..9), at in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let bytes = parts.concat();
        for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic, ProviderKind::Gemini] {
            match read(kind, split(&bytes, &at)) {
                Ok(reply) => {
                    prop_assert!(reply.text.len() <= MAX_TEXT_BYTES && reply.tool_calls.len() <= MAX_TOOL_CALLS);
                    prop_assert!(reply.citations.len() <= MAX_CITATIONS);
                    prop_assert!(reply.is_cut || !reply.text.trim().is_empty() || !reply.tool_calls.is_empty());
                    let arguments = reply.tool_calls.iter().map(|call| call.arguments.as_str());
                    for arguments in arguments {
                        prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(arguments).is_ok());
                    }
                }
                Err(error) => prop_assert!(FailureCode::ALL.contains(&error.code)),
            }
        }
    }
}
