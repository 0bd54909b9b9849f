//! What a provider, or whoever stands in its place, may send as the events of a response.

use everturn_proto::{
    limits::{MAX_TEXT_BYTES, MAX_TOOL_CALLS},
    words::FailureCode,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Part;
use crate::{
    failure::Call,
    responses::reply::{Hearing, State, id, reply},
};

/// Values with the fields of events and responses.
fn values() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 22] = [
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
    const WORDS: [&str; 13] = [
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
    let leaf = prop_oneof![
        6 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
        2 => (0_u64..4).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let fields =
            prop::collection::hash_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..6);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            4 => fields.prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
        ]
    })
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
        let call = Call { provider: "p", model: "m" };
        let mut heard = String::new();
        let mut listener = |_: Part, piece: &str| heard.push_str(piece);
        let mut hearing = Hearing::new(&mut listener);
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
