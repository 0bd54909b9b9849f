//! The begin of turns, of sub-agents, and of the hooks after a turn.

use everturn_proto::{
    ids,
    turn::{
        AfterTurnInput, AfterTurnPlan, AgentDefinition, AgentTool, Delegation, LoadTurnRequest,
        LoadedTurn, ToolCall,
    },
    words::{AgentExecutionStatus, Hook, ToolKind},
};
use everturn_store::{
    BeginTurn, BegunTurn, DayBudget, OnUnknownAgent, StepKey, ToolKey, TurnStart, Turns,
};
use temporalio_common::protos::temporal::api::common::v1::Payload;

use super::{
    MAX_STEPS, Result, from_store, read,
    think::{DELEGATE, HELPER, planned_call, tool_call},
};
use crate::{oracles, promises::WAIT_S, world::World};

/// Returns an agent. The agent of a turn may delegate to one sub-agent.
fn agent(name: &str) -> AgentDefinition {
    AgentDefinition {
        name: name.to_owned(),
        model: Some("m1".to_owned()),
        max_steps: MAX_STEPS,
        max_depth: 1,
        max_sub_agents: 10,
        tools: vec![AgentTool {
            name: DELEGATE.to_owned(),
            kind: ToolKind::Delegate.into(),
            delegates: vec![HELPER.to_owned()],
            ..AgentTool::default()
        }],
        ..AgentDefinition::default()
    }
}

pub(super) async fn load(world: &World, input: &Payload) -> Result<LoadedTurn> {
    let request: LoadTurnRequest = read(input)?;
    world.schedule.step("loads the turn").await;
    if let Some(call) = request.delegation.clone() {
        return load_sub_agent(world, &request, call).await;
    }
    let begin = BeginTurn {
        conversation_id: request.conversation_id,
        tenant_id: request.tenant_id.unwrap_or_else(|| "default".to_owned()),
        message_id: request.message_id,
        content: request.content,
        agent_execution_id: request.agent_execution_id.clone(),
        agent: agent("default"),
        on_unknown_agent: OnUnknownAgent::Begin,
        epoch: Some(request.epoch),
        tenant_budget: DayBudget::default(),
    };
    let (conversation_id, message_id) = (begin.conversation_id.clone(), begin.message_id.clone());
    let start = world
        .store
        .begin_turn(begin)
        .await
        .map_err(|error| from_store(&error))?;
    if let TurnStart::Begun(begun) = &start {
        note_begin(world, &conversation_id, &message_id, begun).await;
    }
    world.schedule.step("has loaded the turn").await;
    let begun = match start {
        TurnStart::Begun(begun) => begun,
        TurnStart::AskAgain { epoch } => {
            return Ok(LoadedTurn {
                ask_again: Some(epoch),
                ..LoadedTurn::default()
            });
        }
    };
    let has_hooks = world.choices().percent(20);
    let has_hooks = {
        let mut facts = world.facts();
        facts
            .promises
            .has_hooks(&request.agent_execution_id, has_hooks)
    };
    Ok(LoadedTurn {
        has_after_turn: has_hooks,
        time_left_ms: world.choices().percent(10).then_some(WAIT_S * 1000),
        ..loaded(*begun)
    })
}

/// Begins a sub-agent.
async fn load_sub_agent(
    world: &World,
    request: &LoadTurnRequest,
    call: Delegation,
) -> Result<LoadedTurn> {
    let key = ToolKey {
        conversation_id: request.conversation_id.clone(),
        message_id: call.message_id,
        agent_execution_id: call.parent_execution_id,
        step: call.step,
        execution_id: call.execution_id,
        epoch: Some(request.epoch),
    };
    let agents = [(HELPER.to_owned(), agent(HELPER))].into();
    let begun = world
        .store
        .begin_sub_agent(&key, &agents, OnUnknownAgent::Begin)
        .await;
    let begun = begun.map_err(|error| from_store(&error))?;
    if begun.is_new {
        let mut facts = world.facts();
        facts.run_changes(&key.message_id, key.epoch, "a begin of a sub-agent");
        let sub_agent = ids::sub_agent_execution_id(&key.conversation_id, &key.execution_id);
        let parent = &key.agent_execution_id;
        facts.promises.delegates(parent, sub_agent);
    }
    world.schedule.step("has begun the sub-agent").await;
    Ok(loaded(begun))
}

fn loaded(begun: BegunTurn) -> LoadedTurn {
    let (name, hash) = begun.agent.map_or_else(Default::default, |agent| {
        (agent.definition.name, agent.hash)
    });
    LoadedTurn {
        status: begun.status.into(),
        agent: name,
        agent_hash: hash,
        max_steps: MAX_STEPS,
        llm_total_timeout_ms: 60_000,
        epoch: begun.epoch,
        cancel_reason: begun.cancel_reason,
        ..LoadedTurn::default()
    }
}

/// Plans one hook after a turn.
pub(super) async fn begin_after_turn(world: &World, input: &Payload) -> Result<AfterTurnPlan> {
    let request: AfterTurnInput = read(input)?;
    let step = StepKey {
        conversation_id: request.conversation_id,
        message_id: request.message_id,
        agent_execution_id: request.agent_execution_id,
        step: ids::AFTER_TURN_STEP,
        epoch: None,
    };
    let (message_id, run) = (&step.message_id, &step.agent_execution_id);
    let execution_id = ids::tool_execution_id(message_id, run, ids::AFTER_TURN_STEP, 0);
    let call = ToolCall {
        hook: Some(Hook::AfterTurn.into()),
        ..tool_call(execution_id, "note")
    };
    world.schedule.step("plans the hooks").await;
    let planned = world
        .store
        .begin_after_turn(&step, std::slice::from_ref(&call))
        .await;
    let has_begun = planned.map_err(|error| from_store(&error))?;
    world.facts().promises.hooks_begin(run);
    world.schedule.step("has planned the hooks").await;
    Ok(AfterTurnPlan {
        tool_calls: has_begun.then(|| planned_call(&call)).into_iter().collect(),
        is_left_out: !has_begun,
    })
}

/// Notes the begin of a turn, and checks it.
async fn note_begin(world: &World, conversation_id: &str, message_id: &str, begun: &BegunTurn) {
    {
        let mut facts = world.facts();
        // The begin of an ended turn changes nothing.
        if begun.status == AgentExecutionStatus::Running {
            facts.run_changes(message_id, Some(begun.epoch), "a begin");
            facts.takes_over(message_id, begun.epoch);
        }
        let is_cancelled = begun.status == AgentExecutionStatus::Cancelled;
        facts.promises.begins(message_id, is_cancelled);
    }
    if begun.is_new {
        oracles::begin_of_interrupt(world, conversation_id, message_id).await;
    }
}
