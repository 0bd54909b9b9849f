//! What this worker does not know although a turn needs it: an agent, a tool, a provider. While the workers of a queue are
//! replaced by others with another configuration, another worker may know it, so the attempt is left to that one, for a
//! bounded time.
//!
//! Must not be here: what becomes of the turn when nobody knows it (`load`, `think`, `run_tool`).

use std::time::Duration;

use everturn_proto::{
    turn::{AgentDefinition, ToolCall},
    words::ToolKind,
};
use everturn_store::OnUnknownAgent;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{AgentActivities, failure as fail};

impl AgentActivities {
    /// Returns what this worker lacks to make a call of the model for this agent.
    pub(crate) fn lacks_for(&self, agent: &AgentDefinition) -> Option<String> {
        if !self.model.has_provider(&agent.provider) {
            return Some(format!("provider `{}`", agent.provider));
        }
        let hooks = agent.hooks.iter();
        let hooks = hooks.flat_map(|hooks| hooks.before_turn.iter().chain(&hooks.after_turn));
        let hooks = hooks.filter_map(|hook| hook.tool.as_ref());
        let mut registered =
            (agent.tools.iter().chain(hooks)).filter(|tool| tool.kind() != ToolKind::Delegate);
        let missing = registered.find(|tool| !self.tools.may_have(&tool.name))?;
        Some(format!("tool `{}`", missing.name))
    }

    /// Returns the tool of this call, when the agent has it and this worker does not.
    pub(crate) fn lacks_tool(&self, call: &ToolCall) -> Option<String> {
        let is_missing = call.names_a_tool() && !self.tools.may_have(&call.tool_name);
        is_missing.then(|| format!("tool `{}`", call.tool_name))
    }

    /// Returns the failure with which the attempt is left to another worker; `None` when it has waited for one for so
    /// long that there is none.
    pub(crate) fn left_to_others(
        &self,
        ctx: &ActivityContext,
        missing: &str,
    ) -> Option<ActivityError> {
        if waited(ctx) >= self.wait_for_peer {
            return None;
        }
        let message = format!("This worker has no {missing}: another worker is asked.");
        tracing::warn!(attempt = ctx.info().attempt, "{message}");
        Some(fail::not_here(ctx, message))
    }

    /// Returns what becomes of a turn that begins here, when this worker does not know its agent.
    pub(crate) fn on_unknown_agent(&self, ctx: &ActivityContext) -> OnUnknownAgent {
        if waited(ctx) < self.wait_for_peer {
            OnUnknownAgent::Refuse
        } else {
            OnUnknownAgent::Begin
        }
    }
}

/// How long the activity has been tried, by the engine's clock. A local activity has just begun.
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
