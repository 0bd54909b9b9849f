//! Hooks: tools that an agent runs around its turns without a request by the model (docs/hooks.md).
//!
//! - [`input`]: the input of a hook
//!
//! Must not be here: the results of the hooks in the context of a turn (`everturn_store::model_input`), and running a hook. A hook is a tool execution like any other (`run_tool`).

mod input;

pub(crate) use self::input::Around;

use std::time::Duration;

use everturn_models::ModelToolCall;
use everturn_proto::{
    ids,
    turn::{AgentHook, ToolCall},
    words::{FailureCode, Hook},
};
use everturn_store::{Access, TurnInputs};
use everturn_tools::{Asker, ToolRegistry, ToolSpec};
use futures::future::join_all;
use temporalio_common::ActivityError;
use tokio::time::timeout;

use crate::{attempt::Attempt, failure as fail, tool_calls};

/// The time limit for a source to return the definition of a tool. An MCP server may have to start. The limit is
/// below the time in which a worker must send a sign of life.
const FIND_LIMIT: Duration = Duration::from_secs(20);

/// Plans the calls of these hooks. `execution_id` returns the id of a tool execution by the hook's position.
pub(crate) async fn plan(
    tools: &ToolRegistry,
    hooks: &[AgentHook],
    hook: Hook,
    around: &Around<'_>,
    execution_id: impl Fn(usize) -> String,
) -> Vec<ToolCall> {
    let specs = join_all(hooks.iter().map(|planned| spec(tools, planned, around))).await;
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
                ..tool_calls::stored(call, id, call_id, Some(&tool), spec.as_slice())
            }
        })
        .collect()
}

/// Returns the definition of a hook's tool. Returns `None` for a missing tool: the hook then fails with an error when
/// it runs.
async fn spec(tools: &ToolRegistry, hook: &AgentHook, around: &Around<'_>) -> Option<ToolSpec> {
    let asker = Asker {
        tenant_id: &around.owner.tenant_id,
        owner_id: around.owner.owner_id.as_deref(),
        agent: around.agent,
    };
    let name = hook.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let found = timeout(FIND_LIMIT, tools.find(name, asker)).await;
    Some(found.ok()?.ok()?.spec().clone())
}

/// Returns the tenant and the owner of the conversation.
pub(crate) async fn owner(
    inputs: &dyn TurnInputs,
    attempt: &Attempt<'_>,
    conversation_id: &str,
) -> Result<Access, ActivityError> {
    let owner = attempt.insist(|| inputs.owner_of(conversation_id)).await?;
    owner.ok_or_else(|| {
        let message = format!("The conversation `{conversation_id}` is not stored.");
        fail::permanent(FailureCode::Internal, message)
    })
}
