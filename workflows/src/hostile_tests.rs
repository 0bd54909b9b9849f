//! What anybody in the engine's namespace may send: any input, signal or answer. Whatever it is, it changes nothing
//! else than it may, stays within the limits, and fails no workflow task.

use everturn_proto::{
    Lenient,
    limits::MAX_QUEUED_MESSAGES,
    turn::{Cancel, PlannedCall, ResolveApproval, Submit, ToolResultStored, TurnInput},
};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::{AgentExecution, outside::Through};

#[derive(Debug, Clone)]
enum Sent {
    Submit(Value),
    Cancel(Value),
    Resolve(Value),
    ToolResult(Value),
    /// The turn goes on: a step begins with these calls.
    Step(Vec<(String, bool)>),
    Steer,
    Next,
}

/// A payload with the fields that signals have. Few ids, so that they are about the same things.
fn payloads() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 10] = [
        "message_id",
        "content",
        "on_busy",
        "reason",
        "execution_id",
        "decision",
        "input_hash",
        "tool_input",
        "remember",
        "resolved_by",
    ];
    const WORDS: [&str; 11] = [
        "a",
        "b",
        "c",
        "",
        "interrupt",
        "steer",
        "approve",
        "deny",
        "hash",
        "a b",
        "\0",
    ];
    let value = prop_oneof![
        8 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(serde_json::json!({"a": [1.5]})),
        1 => Just(Value::Null),
    ];
    let fields = prop::collection::hash_map(prop::sample::select(&NAMES[..]), value.clone(), 0..7)
        .prop_map(|fields| {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            Value::Object(fields.collect::<Map<_, _>>())
        });
    prop_oneof![6 => fields, 1 => value]
}

fn inputs() -> impl Strategy<Value = Value> {
    let number = prop_oneof![0..3_u32, Just(u32::MAX)];
    (payloads(), number.clone(), number, any::<[bool; 3]>()).prop_map(
        |(message, from_step, anonymous_messages, [has_waiting, goes_on, is_input])| {
            if !is_input {
                return message;
            }
            serde_json::json!({
                "conversation_id": "c", "message": message, "from_step": from_step,
                "anonymous_messages": anonymous_messages, "has_waiting": has_waiting, "goes_on": goes_on,
            })
        },
    )
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        6 => payloads().prop_map(Sent::Submit),
        3 => payloads().prop_map(Sent::Cancel),
        3 => payloads().prop_map(Sent::Resolve),
        2 => payloads().prop_map(Sent::ToolResult),
        1 => prop::collection::vec(("[abc]", any::<bool>()), 0..3).prop_map(Sent::Step),
        1 => Just(Sent::Steer),
        1 => Just(Sent::Next),
    ]
}

/// Decodes a payload as the engine's SDK does, by way of its JSON.
fn decoded<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    Lenient::of_json(value).0
}

fn take(state: &mut AgentExecution, sent: Sent) {
    match sent {
        Sent::Submit(value) => {
            if let Ok(submit) = decoded::<Submit>(value) {
                state.accept(submit, "run");
            }
        }
        Sent::Cancel(value) => {
            if let Ok(cancel) = decoded::<Cancel>(value) {
                state.inbox.cancel(cancel);
            }
        }
        Sent::Resolve(value) => {
            if let Ok(answer) = decoded::<ResolveApproval>(value) {
                let is_fine = state.outside.check(&answer, Through::Update).is_ok();
                let (id, had) = (
                    answer.execution_id.clone(),
                    state.outside.answer(&answer.execution_id).is_some(),
                );
                assert!(!(is_fine && had), "the first answer counts");
                let taken = state.outside.resolve(answer, Through::Update);
                assert!(!is_fine || (taken.is_ok() && state.outside.answer(&id).is_some()));
            }
        }
        Sent::ToolResult(value) => {
            if let Ok(stored) = decoded::<ToolResultStored>(value) {
                state.outside.result_stored(stored.execution_id);
            }
        }
        Sent::Step(calls) => {
            let call = |(execution_id, is_client): (String, bool)| PlannedCall {
                execution_id,
                kind: if is_client { "client" } else { "worker" }.to_owned(),
                approval_timeout_s: (!is_client).then_some(60),
                input_hash: "hash".to_owned(),
                ..PlannedCall::default()
            };
            let calls: Vec<_> = calls.into_iter().map(call).collect();
            state.outside.begin_step(&calls);
        }
        Sent::Steer => drop(state.inbox.take_steers()),
        Sent::Next => {
            let look = state.inbox.begin_look();
            state.inbox.end_look(&look, None);
            state.end_turn();
        }
    }
}

proptest! {
    #[test]
    fn any_signals_leave_a_run_that_goes_on_within_its_limits(
        input in inputs(), sent in prop::collection::vec(sent(), 0..150), first: bool,
    ) {
        let mut state = AgentExecution::begin(decoded::<TurnInput>(input));
        let message = state.input.as_mut().ok().and_then(|input| input.message.take());
        if let Some(submit) = message {
            state.accept(submit, "run");
        }
        if first {
            let _ = state.take_first();
        }
        for sent in sent {
            take(&mut state, sent);
            prop_assert!(state.inbox.len() <= MAX_QUEUED_MESSAGES);
            let status = state.turn_status();
            prop_assert!(serde_json::to_string(&status).is_ok());
        }
        let look = state.inbox.begin_look();
        prop_assert!(look.cancels.len() <= MAX_QUEUED_MESSAGES);
        for submit in look.submits {
            let id = submit.message_id.unwrap_or_default();
            prop_assert!(everturn_proto::ids::is_valid(&id), "{}", id);
            prop_assert!(submit.content.is_some_and(|text| !text.contains('\0')));
        }
    }
}
