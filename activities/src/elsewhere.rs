//! A turn's agent, tool or provider that is missing on this worker. While workers with another configuration replace
//! the workers of a queue, another worker may have the missing part. Therefore the attempt is left to the other worker,
//! for a bounded time.
//!
//! Must not be here: the way on without a part that no worker has (`load`, `think`, `run_tool`).

use std::{
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use everturn_models::ModelClient;
use everturn_proto::{
    turn::{AgentDefinition, ToolCall},
    words::ToolKind,
};
use everturn_store::OnUnknownAgent;
use everturn_tools::ToolRegistry;
use lru::LruCache;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::failure as fail;

/// The most missing parts that a worker remembers. A forgotten part costs its agent execution another wait.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A part of the configuration that an agent needs, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Provider(String),
    Tool(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(name) => write!(f, "provider `{name}`"),
            Self::Tool(name) => write!(f, "tool `{name}`"),
        }
    }
}

/// Returns the missing parts for a call of the agent's model on this worker.
pub(crate) fn lacks_for(
    model: &dyn ModelClient,
    tools: &ToolRegistry,
    agent: &AgentDefinition,
) -> Vec<Part> {
    let provider =
        (!model.has_provider(&agent.provider)).then(|| Part::Provider(agent.provider.clone()));
    let hooks = agent.hooks.iter();
    let hooks = hooks.flat_map(|hooks| hooks.before_turn.iter().chain(&hooks.after_turn));
    let hooks = hooks.filter_map(|hook| hook.tool.as_ref());
    let registered =
        (agent.tools.iter().chain(hooks)).filter(|tool| tool.kind() != ToolKind::Delegate);
    let missing = registered.filter(|tool| !tools.may_have(&tool.name));
    let missing = missing.map(|tool| Part::Tool(tool.name.clone()));
    provider.into_iter().chain(missing).collect()
}

/// The parts for which an agent execution has waited in vain, by the id of the agent execution. Without the memory, each
/// step of a turn would wait for a removed tool. Clones share the memory.
#[derive(Debug, Clone)]
pub(crate) struct Gone(Arc<Mutex<LruCache<(String, Part), ()>>>);

impl Gone {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_KNOWN))))
    }

    /// True when the agent execution has waited for the part.
    pub(crate) fn has(&self, agent_execution_id: &str, part: &Part) -> bool {
        let key = (agent_execution_id.to_owned(), part.clone());
        let mut gone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gone.get(&key).is_some()
    }

    /// Notes that the agent execution has waited for the part. Returns false for a known part.
    pub(crate) fn note(&self, agent_execution_id: &str, part: &Part) -> bool {
        let key = (agent_execution_id.to_owned(), part.clone());
        let mut gone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gone.put(key, ()).is_none()
    }
}

/// Returns the tool of this call, when the agent has the tool and this worker does not.
pub(crate) fn lacks_tool(tools: &ToolRegistry, call: &ToolCall) -> Option<String> {
    let is_missing = call.names_a_tool() && !tools.may_have(&call.tool_name);
    is_missing.then(|| Part::Tool(call.tool_name.clone()).to_string())
}

/// Returns the error of a call whose tool no worker has any more.
pub(crate) fn removed_tool(tool_name: &str) -> String {
    format!(
        "The tool `{tool_name}` was removed from the configuration, and cannot run any more. Go on without the tool."
    )
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
pub(crate) fn waited(ctx: &ActivityContext) -> Duration {
    let info = ctx.info();
    let times = info.started_time.zip(info.scheduled_time);
    match times {
        Some((started, scheduled)) if !info.is_local => {
            started.duration_since(scheduled).unwrap_or_default()
        }
        _ => Duration::ZERO,
    }
}
