//! Hooks: tools that an agent names to run around its turns, without being asked for by the model (docs/hooks.md).
//!
//! - [`input`]: what a hook is told of its turn
//! - [`block`]: what the hooks before a turn gave, in the context of the turn
//!
//! Must not be here: how a hook runs. It is a tool execution like any other (`run_tool`).

mod block;
mod input;

pub(crate) use self::{block::place, input::Around};

use std::time::Duration;

use everturn_proto::{
    ids,
    turn::{AgentHook, ToolCall},
    words::{FailureCode, Hook},
};
use everturn_store::ConversationOwner;
use futures::future::join_all;
use temporalio_common::ActivityError;
use tokio::time::timeout;

use crate::{
    AgentActivities,
    attempt::Attempt,
    failure as fail,
    model::ModelToolCall,
    think,
    tools::{Asker, ToolSpec},
};

/// How long the source of a tool may take to say what the tool is: an MCP server may have to start. It is less than the time in
/// which a worker must show that it lives.
const FIND_LIMIT: Duration = Duration::from_secs(20);

/// Plans the calls of these hooks. `execution_id` names the tool execution of each, by its place.
pub(crate) async fn plan(
    activities: &AgentActivities,
    hooks: &[AgentHook],
    hook: Hook,
    around: &Around<'_>,
    execution_id: impl Fn(usize) -> String,
) -> Vec<ToolCall> {
    let specs = join_all(
        hooks
            .iter()
            .map(|planned| spec(activities, planned, around)),
    )
    .await;
    let planned = hooks.iter().zip(specs).enumerate();
    planned
        .map(|(index, (planned, spec))| {
            let tool = planned.tool.clone().unwrap_or_default();
            let schema = spec.as_ref().map(|spec| &spec.parameters);
            let call = ModelToolCall {
                call_id: None,
                tool_name: tool.name.clone(),
                arguments: around.input(&hook, planned.input.as_ref(), schema),
                signatures: Vec::new(),
            };
            let id = execution_id(index);
            let call_id = ids::call_id(&id);
            ToolCall {
                hook: Some((&hook).into()),
                ..think::planned_call(call, id, call_id, Some(&tool), spec.as_slice())
            }
        })
        .collect()
}

/// What the tool of a hook is. `None` when it is not there: then it fails when it runs, and says so.
async fn spec(
    activities: &AgentActivities,
    hook: &AgentHook,
    around: &Around<'_>,
) -> Option<ToolSpec> {
    let asker = Asker {
        tenant_id: &around.owner.access.tenant_id,
        agent: around.agent,
    };
    let name = hook.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let found = timeout(FIND_LIMIT, activities.tools.find(name, asker)).await;
    Some(found.ok()?.ok()?.spec().clone())
}

/// Returns the tenant and the owner of the conversation.
pub(crate) async fn owner(
    activities: &AgentActivities,
    attempt: &Attempt<'_>,
    conversation_id: &str,
) -> Result<ConversationOwner, ActivityError> {
    let owner = attempt
        .insist(|| activities.turns.owner_of(conversation_id))
        .await?;
    owner.ok_or_else(|| {
        let message = format!("The conversation `{conversation_id}` is not stored.");
        fail::permanent(FailureCode::Internal, message)
    })
}
