//! What holds for any order of checkpoints, saves and replays of saves.

use std::collections::HashMap;

use everturn_proto::{
    turn::ToolCall,
    words::{ApprovalState, Effect, EventType, ToolStatus},
};
use proptest::prelude::*;

use super::{
    AgentExecutionEnd, approval as approval_of, call, cancelled, completed, end, failed,
    model::Model, observe, state, steer, thought,
};

const STEPS: u32 = 4;
const TOOLS: u32 = 3;

#[derive(Debug, Clone)]
enum Op {
    Checkpoint { step: u32, tools: u32, text: bool },
    Partial(u32),
    Thought(u32),
    Start(u32, u32),
    Observe(u32, u32),
    Approval(u32, u32, ApprovalState),
    Steer(u32),
    End(u32, AgentExecutionEnd),
}

fn op() -> impl Strategy<Value = Op> {
    let way = prop::sample::select(vec![completed(), cancelled(), failed()]);
    let decision = prop::sample::select(vec![
        ApprovalState::Approved,
        ApprovalState::Denied,
        ApprovalState::Expired,
    ]);
    prop_oneof![
        4 => (0..STEPS, 0..=TOOLS, any::<bool>()).prop_map(|(step, tools, text)| Op::Checkpoint { step, tools, text }),
        1 => (0..STEPS).prop_map(Op::Partial),
        4 => (0..STEPS).prop_map(Op::Thought),
        4 => (0..STEPS, 0..TOOLS).prop_map(|(step, index)| Op::Start(step, index)),
        6 => (0..STEPS, 0..TOOLS).prop_map(|(step, index)| Op::Observe(step, index)),
        3 => (0..STEPS, 0..TOOLS, decision).prop_map(|(step, index, decision)| Op::Approval(step, index, decision)),
        1 => (0..3u32).prop_map(Op::Steer),
        1 => (0..STEPS, way).prop_map(|(step, way)| Op::End(step, way)),
    ]
}

fn execution_id(step: u32, index: u32) -> String {
    format!("exec_{step}_{index}")
}

fn apply(model: &mut Model, op: &Op) {
    let effects = [Effect::Read, Effect::Idempotent, Effect::Once];
    match op.clone() {
        Op::Checkpoint { step, tools, text } => {
            let calls = (0..tools)
                .zip(effects)
                .map(|(index, effect)| call(&execution_id(step, index), effect));
            let ask = |mut call: ToolCall| {
                call.approval_timeout_s = (step % 2 == 1).then_some(60);
                call
            };
            let state = state(if text { "text" } else { "" }, "", calls.map(ask).collect());
            // The first checkpoint of a step wins.
            model.checkpoints.entry(step).or_insert(state);
        }
        Op::Partial(step) => {
            model.partials.insert(step, state("so far", "", vec![]));
        }
        Op::Thought(step) => model.save(&thought(step)),
        Op::Start(step, index) => model.start(&execution_id(step, index)),
        Op::Observe(step, index) => model.save(&observe(step, &execution_id(step, index), None)),
        Op::Approval(step, index, decision) => {
            model.save(&approval_of(step, &execution_id(step, index), decision));
        }
        Op::Steer(number) => model.save(&steer(&format!("steer_{number}"))),
        Op::End(step, way) => model.save(&end(step, way)),
    }
}

proptest! {
    #[test]
    fn any_order_of_saves_keeps_the_invariants(ops in prop::collection::vec(op(), 0..60), is_sub_agent: bool) {
        let mut model = Model::new(is_sub_agent);
        for op in &ops {
            apply(&mut model, op);
            // Every save may be replayed at once.
            let before = model.events.len();
            apply(&mut model, op);
            prop_assert_eq!(model.events.len(), before);
        }
        model.save(&end(STEPS, cancelled()));
        let ended = model.events.len();
        for op in &ops {
            apply(&mut model, op);
        }
        prop_assert_eq!(model.events.len(), ended, "nothing after the end");

        let mut acts: HashMap<String, i32> = HashMap::new();
        let mut approvals: HashMap<String, i32> = HashMap::new();
        for (place, event) in model.events.iter().enumerate() {
            prop_assert_eq!(event.sequence_number as usize, place + 1);
            let execution = event.data.to_value()["execution_id"].as_str().unwrap_or_default().to_owned();
            match event.event_type {
                EventType::Act => prop_assert_eq!(acts.insert(execution, 1), None),
                EventType::ApprovalRequested => prop_assert_eq!(approvals.insert(execution, 1), None),
                EventType::ApprovalResolved => prop_assert_eq!(approvals.insert(execution, 0), Some(1)),
                EventType::Observe => prop_assert_eq!(acts.insert(execution, 0), Some(1)),
                _ => {}
            }
        }
        prop_assert!(acts.values().all(|open| *open == 0), "every act has its observe");
        prop_assert!(approvals.values().all(|open| *open == 0), "every approval has its answer");
        for tool in model.tools.iter().filter(|tool| tool.record.status == ToolStatus::OutcomeUnknown) {
            prop_assert!(tool.record.approval.lets_run(), "what was not approved never ran");
        }
        let ends = model.events.iter().filter(|event| event.event_type.ends_agent_execution()).count();
        prop_assert_eq!(ends, 1);
        prop_assert_eq!(model.delegate_call_end.is_some(), is_sub_agent, "a sub-agent's end ends the call that started it");
        prop_assert!(model.events.last().unwrap().event_type.ends_agent_execution());
        let counted = |event: &&super::NewEvent| {
            let is_answer = event.event_type == EventType::AssistantMessage && !is_sub_agent;
            is_answer || event.event_type == EventType::UserMessage
        };
        prop_assert_eq!(model.messages as usize, model.events.iter().filter(counted).count());
        for row in &model.assistants {
            let calls: Vec<_> = row.tool_calls.iter().map(|call| &call.execution_id).collect();
            let results: Vec<_> = model.results.get(&row.id).into_iter().flatten().collect();
            prop_assert_eq!(calls, results, "a result for each call, in call order");
        }
    }
}
