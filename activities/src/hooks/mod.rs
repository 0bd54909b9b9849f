//! Hooks: tools that an agent names to run around its turns, without being asked for by the model (docs/hooks.md).
//!
//! - [`input`]: what a hook is told of its turn
//! - [`block`]: what the hooks before a turn gave, in the context of the turn
//!
//! Must not be here: how a hook runs. It is a tool execution like any other (`run_tool`).

mod block;
mod input;

pub(crate) use self::{block::place, input::Around};

use everturn_proto::{
    ids,
    turn::{AgentHook, ToolCall},
    words::{Hook, failure},
};
use everturn_store::Access;
use temporalio_common::ActivityError;

use crate::{
    AgentActivities, attempt::Attempt, failure as fail, model::ModelToolCall, think,
    tools::ToolSpec,
};

/// Plans the calls of these hooks. `execution_id` names the tool execution of each, by its place.
pub(crate) async fn plan(
    activities: &AgentActivities,
    hooks: &[AgentHook],
    hook: Hook,
    around: &Around<'_>,
    execution_id: impl Fn(usize) -> String,
) -> Vec<ToolCall> {
    let mut calls = Vec::with_capacity(hooks.len());
    for (index, planned) in hooks.iter().enumerate() {
        let tool = planned.tool.clone().unwrap_or_default();
        // A tool that is not there fails when it runs, and says so.
        let found = activities.tools.find(&tool.name).await.ok();
        let specs: Vec<ToolSpec> = found.iter().map(|tool| tool.spec().clone()).collect();
        let schema = specs.first().map(|spec| &spec.parameters);
        let id = execution_id(index);
        let call = ModelToolCall {
            call_id: None,
            tool_name: tool.name.clone(),
            arguments: around.input(&hook, planned.input.as_ref(), schema),
            signatures: Vec::new(),
        };
        let call_id = ids::call_id(&id);
        calls.push(ToolCall {
            hook: Some((&hook).into()),
            ..think::planned_call(call, id, call_id, Some(&tool), &specs)
        });
    }
    calls
}

/// Whose conversation it is.
pub(crate) async fn owner(
    activities: &AgentActivities,
    attempt: &Attempt<'_>,
    conversation_id: &str,
) -> Result<Access, ActivityError> {
    let owner = attempt
        .insist(|| activities.turns.owner_of(conversation_id))
        .await?;
    owner.ok_or_else(|| {
        let message = format!("The conversation `{conversation_id}` is not stored.");
        fail::permanent(failure::INTERNAL, message)
    })
}
