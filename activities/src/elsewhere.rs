//! A turn's agent, tool or provider that is missing on this worker. While workers with another configuration replace
//! the workers of a queue, another worker may have the missing part. Therefore the attempt is left to the other worker,
//! for a bounded time.
//!
//! Must not be here: the end of a turn whose missing part no worker has (`load`, `think`, `run_tool`).

use std::time::Duration;

use everturn_models::ModelClient;
use everturn_proto::{
    turn::{AgentDefinition, ToolCall},
    words::ToolKind,
};
use everturn_store::OnUnknownAgent;
use everturn_tools::ToolRegistry;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::failure as fail;

/// Returns the missing part for a call of the agent's model on this worker.
pub(crate) fn lacks_for(
    model: &dyn ModelClient,
    tools: &ToolRegistry,
    agent: &AgentDefinition,
) -> Option<String> {
    if !model.has_provider(&agent.provider) {
        return Some(format!("provider `{}`", agent.provider));
    }
    let hooks = agent.hooks.iter();
    let hooks = hooks.flat_map(|hooks| hooks.before_turn.iter().chain(&hooks.after_turn));
    let hooks = hooks.filter_map(|hook| hook.tool.as_ref());
    let mut registered =
        (agent.tools.iter().chain(hooks)).filter(|tool| tool.kind() != ToolKind::Delegate);
    let missing = registered.find(|tool| !tools.may_have(&tool.name))?;
    Some(format!("tool `{}`", missing.name))
}

/// Returns the tool of this call, when the agent has the tool and this worker does not.
pub(crate) fn lacks_tool(tools: &ToolRegistry, call: &ToolCall) -> Option<String> {
    let is_missing = call.names_a_tool() && !tools.may_have(&call.tool_name);
    is_missing.then(|| format!("tool `{}`", call.tool_name))
}

/// The other workers of the queue, which may have another configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peers {
    /// The time for which an attempt is left to other workers.
    pub(crate) wait: Duration,
}

impl Peers {
    /// Returns the failure that leaves the attempt to another worker; `None` after the waiting time, because no other
    /// worker has taken the attempt.
    pub(crate) fn left_to_others(
        &self,
        ctx: &ActivityContext,
        missing: &str,
    ) -> Option<ActivityError> {
        if waited(ctx) >= self.wait {
            return None;
        }
        let message = format!("This worker has no {missing}: another worker is asked.");
        tracing::warn!(attempt = ctx.info().attempt, "{message}");
        Some(fail::not_here(ctx, message))
    }

    /// Returns the policy for a turn with an unknown agent.
    pub(crate) fn on_unknown_agent(&self, ctx: &ActivityContext) -> OnUnknownAgent {
        if waited(ctx) < self.wait {
            OnUnknownAgent::Refuse
        } else {
            OnUnknownAgent::Begin
        }
    }
}

/// Returns how long the activity has been tried, by the engine's clock. A local activity has just begun.
fn waited(ctx: &ActivityContext) -> Duration {
    let info = ctx.info();
    let times = info.started_time.zip(info.scheduled_time);
    match times {
        Some((started, scheduled)) if !info.is_local => {
            started.duration_since(scheduled).unwrap_or_default()
        }
        _ => Duration::ZERO,
    }
}
