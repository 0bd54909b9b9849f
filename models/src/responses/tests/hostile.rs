//! What a provider, or whoever stands in its place, may send as the events of a response.

use everturn_proto::{
    limits::{MAX_TEXT_BYTES, MAX_TOOL_CALLS},
    words::FailureCode,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Part;
use crate::{
    failure::Call,
    responses::reply::{Events, State, id, reply},
    wire,
};

/// The fields of events and responses.
const NAMES: &[&str] = &[
    "type",
    "sequence_number",
    "delta",
    "output_index",
    "content_index",
    "summary_index",
    "item",
    "response",
    "status",
    "output",
    "content",
    "summary",
    "text",
    "arguments",
    "call_id",
    "name",
    "usage",
    "input_tokens",
    "encrypted_content",
    "error",
    "code",
    "incomplete_details",
];
const WORDS: &[&str] = &[
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "response.output_item.done",
    "response.completed",
    "completed",
    "incomplete",
    "failed",
    "message",
    "reasoning",
    "function_call",
    "{\"a\":1}",
    "{",
    "a",
];

fn values() -> impl Strategy<Value = Value> {
    wire::tests::values(NAMES, WORDS)
}

/// An event of a known type, in which everything else may be anything.
fn events() -> impl Strategy<Value = Value> {
    let known = "response\\.(output_text\\.delta|reasoning_text\\.delta|output_item\\.done|completed|incomplete|failed)";
    (values(), known, any::<bool>()).prop_map(|(mut event, known, is_known)| {
        if is_known && event.is_object() {
            event["type"] = known.into();
        }
        event
    })
}

proptest! {
    #[test]
    fn any_events_are_a_reply_within_the_limits_or_an_error_with_a_code(
        events in prop::collection::vec(events(), 0..12), response in values(),
    ) {
        let call = Call { provider: "p", model: "m", advice: None };
        let mut heard = String::new();
        let mut listener = |_: Part, piece: &str| heard.push_str(piece);
        let mut hearing = Events::new(&mut listener);
        let mut ended = vec![response.clone(), json!({"status": "completed", "output": response})];
        for event in events {
            match hearing.hear(event) {
                Ok(response) => ended.extend(response),
                Err(error) => prop_assert!(FailureCode::ALL.contains(&error.code)),
            }
        }
        for response in ended {
            let _ = id(&response);
            match reply(call, &response) {
                Ok(reply) => {
                    prop_assert!(reply.text.len() <= MAX_TEXT_BYTES && reply.tool_calls.len() <= MAX_TOOL_CALLS);
                    let _ = hearing.finish(&reply);
                }
                Err(error) => prop_assert!(FailureCode::ALL.contains(&error.code)),
            }
            let _ = matches!(State::of(response), State::Running);
        }
    }
}
