//! Sub-agents.
//!
//! - `begins.rs`: which calls have one, and what it sees
//! - `ends.rs`: what its end gives the call that started it
//! - `lost.rs`: sub-agents that end with their parent, or whose workflow is gone
//! - `tree.rs`: the list of agent executions

mod begins;
mod ends;
mod lost;
mod tree;

pub use self::{
    begins::{
        a_call_that_may_not_have_one_is_ended, a_sub_agent_begins_once,
        a_sub_agent_has_its_own_context, the_depth_and_the_number_of_sub_agents_are_limited,
    },
    ends::{
        a_call_whose_record_is_missing_keeps_the_answer, a_parent_is_told_how_its_sub_agents_ended,
        its_end_ends_the_call_that_started_it, sub_agents_write_at_once,
    },
    lost::{
        a_lost_sub_agent_ends_though_the_record_of_its_call_is_missing,
        a_lost_turn_ends_with_its_sub_agents, an_observe_ends_a_lost_sub_agent,
        the_end_of_a_parent_ends_the_tree_below,
    },
    tree::{
        a_stranger_sees_no_agent_execution, agent_executions_are_a_tree,
        agent_executions_are_paged, an_agent_execution_has_its_checkpoints_and_tool_calls,
    },
};

use std::collections::BTreeMap;

use everturn_proto::{
    ids,
    turn::{AgentDefinition, AgentTool, ToolCall},
    words::{AgentExecutionStatus, Effect, ToolKind},
};
use everturn_store::{BeginTurn, BegunTurn, OnUnknownAgent};

use super::{
    Backend,
    fixture::{Turn, TurnStore, json, state},
};

/// Returns the agents `a` and `b`, which may delegate to each other.
pub fn agents() -> BTreeMap<String, AgentDefinition> {
    let delegate = AgentTool {
        name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        delegates: vec!["a".into(), "b".into(), "gone".into()],
        ..AgentTool::default()
    };
    let agent = |name: &str| AgentDefinition {
        name: name.into(),
        model: Some("m1".into()),
        tools: vec![delegate.clone()],
        max_depth: 2,
        max_sub_agents: 4,
        ..AgentDefinition::default()
    };
    ["a", "b"].map(|name| (name.to_owned(), agent(name))).into()
}

/// Begins a turn of agent `a` whose first step asked for `calls` sub-agents.
pub(super) async fn delegating<B: Backend>(backend: &B, calls: usize) -> Turn<B::Store> {
    let turn = turn_of_a(backend.open().await).await;
    delegates(&turn, &vec![r#"{"agent": "b", "task": "look"}"#; calls]).await;
    turn
}

/// Begins a turn of agent `a`.
async fn turn_of_a<S: TurnStore>(store: S) -> Turn<S> {
    let turn = Turn::new(store, "c", "m");
    let begin = BeginTurn {
        agent: agents()["a"].clone(),
        ..turn.begin("share this out")
    };
    turn.store.begin_turn(begin).await.unwrap();
    turn
}

/// Saves a step in which the agent execution asks for a sub-agent with each of these inputs.
pub async fn delegates<S: TurnStore>(turn: &Turn<S>, inputs: &[&str]) {
    let call = |(index, input): (usize, &&str)| ToolCall {
        tool_name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        tool_input: Some(json(input)),
        ..turn.call(0, index, Effect::Idempotent)
    };
    let calls = inputs.iter().enumerate().map(call).collect();
    turn.store
        .complete_step(&turn.step(0), state("sharing", calls))
        .await
        .unwrap();
    turn.thought(0).await;
}

/// Begins the sub-agent of a call, and returns what the store says.
async fn begin<S: TurnStore>(parent: &Turn<S>, index: usize) -> BegunTurn {
    parent
        .store
        .begin_sub_agent(&parent.tool(0, index), &agents(), OnUnknownAgent::Begin)
        .await
        .unwrap()
}

/// Returns the sub-agent of a call, as a turn whose agent execution is the sub-agent's.
fn child<S: Clone>(parent: &Turn<S>, execution_id: &str) -> Turn<S> {
    let execution = ids::sub_agent_execution_id(&parent.conversation, execution_id);
    Turn {
        execution,
        ..parent.clone()
    }
}

/// Begins the sub-agent of a call, and fails when that is not possible.
pub async fn begun<S: TurnStore + Clone>(parent: &Turn<S>, index: usize) -> Turn<S> {
    assert_eq!(
        begin(parent, index).await.status,
        AgentExecutionStatus::Running
    );
    child(parent, &parent.execution_id(0, index))
}
