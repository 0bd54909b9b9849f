//! What a gateway, or whoever stands in its place, may send: any bytes, any frames. Nothing of it panics, takes more room than
//! it may, or depends on where the bytes were cut.

#![allow(clippy::unwrap_used)]

use everturn_client::{
    list::ConversationList,
    sse::{Message, Parser, TooLarge},
    state::{Conversation, turn_rows},
};
use proptest::prelude::*;
use serde_json::{Map, Value};

const TYPES: [&str; 24] = [
    "user_message",
    "thought",
    "act",
    "observe",
    "assistant_message",
    "complete",
    "error",
    "cancelled",
    "approval_requested",
    "approval_resolved",
    "client_tool_requested",
    "sub_agent_start",
    "work_plan",
    "step_start",
    "step_end",
    "context_compacted",
    "model_fallback",
    "replay",
    "text_start",
    "text_delta",
    "text_end",
    "reset",
    "end",
    "list",
];

const NAMES: [&str; 31] = [
    "sequence_number",
    "created_at",
    "message_id",
    "agent_execution_id",
    "execution_id",
    "call_id",
    "content",
    "reasoning",
    "thought",
    "step",
    "steps",
    "generation",
    "offset",
    "part",
    "text",
    "tool_name",
    "tool_input",
    "result",
    "is_error",
    "outcome_unknown",
    "duration_ms",
    "decision",
    "plan_id",
    "status",
    "step_number",
    "from_sequence",
    "reason",
    "usage",
    "conversations",
    "conversation",
    "conversation_id",
];

/// Few ids, so that frames are about the same things; and values of every other kind.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::sample::select(&["a", "b", "pending", "2026-11-22T10:00:00.123Z", "", "text"][..]).prop_map(Value::from),
        4 => (0_u64..6).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let name = prop::sample::select(&NAMES[..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map(name, inner, 0..4).prop_map(object),
        ]
    })
}

fn object(fields: std::collections::HashMap<&'static str, Value>) -> Value {
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// A frame of any type, in which each field may hold anything.
fn frames() -> impl Strategy<Value = (Option<String>, Value)> {
    let event_type =
        prop_oneof![8 => prop::sample::select(&TYPES[..]).prop_map(Value::from), 1 => values()];
    let name = prop::sample::select(&NAMES[..]);
    let fields = prop::collection::hash_map(name, values(), 0..10);
    let id = proptest::option::of("[0-9a-z-]{0,5}");
    (id, event_type, fields, 1_u64..40).prop_map(|(id, event_type, fields, number)| {
        let mut frame = object(fields);
        frame["type"] = event_type;
        // Most frames are the next ones.
        if number > 4 {
            frame["sequence_number"] = number.into();
        }
        (id, frame)
    })
}

fn read(parser: &mut Parser, pieces: &[&[u8]]) -> (Vec<Message>, Option<TooLarge>) {
    let mut messages = Vec::new();
    for piece in pieces {
        match parser.take(piece) {
            Ok(read) => messages.extend(read),
            Err(too_large) => return (messages, Some(too_large)),
        }
    }
    (messages, None)
}

proptest! {
    #[test]
    fn any_bytes_are_read_wherever_they_were_cut(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "((data|id|event|retry|x)?:? ?[a-z0-9é\\u{feff}]{0,6}(\r|\n|\r\n)){0,20}".prop_map(String::into_bytes),
        ],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let whole = read(&mut Parser::default(), &[&bytes]);
        prop_assert_eq!(read(&mut Parser::default(), &pieces), whole);
    }

    #[test]
    fn a_message_past_the_limit_ends_the_stream(length in 0_usize..300, lines in 1_usize..5) {
        const LIMIT: usize = 100;
        let line = format!("data:{}\n", "x".repeat(length));
        let mut parser = Parser::with_limit(LIMIT);
        let (messages, too_large) = read(&mut parser, &[line.repeat(lines).as_bytes(), b"\n"]);
        let bytes = lines * (line.len() - 1);
        prop_assert_eq!(too_large.is_some(), bytes > LIMIT);
        prop_assert!(messages.iter().all(|message| message.data.len() <= LIMIT));
    }

    #[test]
    fn any_frames_make_a_state_that_can_be_shown(frames in prop::collection::vec(frames(), 0..12)) {
        let (mut state, mut list) = (Conversation::default(), ConversationList::default());
        for (id, frame) in frames {
            let before = state.last_sequence();
            let is_reset = frame["type"] == "reset";
            list.apply(&frame);
            state.apply(id.as_deref(), frame);
            prop_assert!(is_reset || state.last_sequence() >= before);
            prop_assert!(state.texts().len() <= 256);
            let _ = (state.status(), state.cursor().len(), list.conversations());
        }
        prop_assert!(serde_json::to_string(&state).is_ok());
        let _ = (turn_rows(state.items(), state.turn()), turn_rows(state.items(), None));
    }
}
