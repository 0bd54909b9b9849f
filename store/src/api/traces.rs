//! The traces that turns belong to, beside the turns themselves: no table of the turns knows of them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::ids;

use super::Result;

/// Keeps the trace of each turn and sub-agent, so that whoever does a part of it, in whatever process, finds the span that
/// its own belongs under. For gateways and workers that export traces; the others never call this.
#[async_trait]
pub trait TraceContexts: Send + Sync {
    /// Keeps the context in which a turn was asked for. The first one wins, and a conversation that is not there has none.
    async fn offer_trace(&self, of: &TraceKey, context: &TraceContext) -> Result<()>;

    /// Notes that an agent execution has begun now, in the context that was offered, else in this one. Returns what is kept
    /// then: when it is repeated, the same.
    async fn begin_trace(
        &self,
        of: &TraceKey,
        context: &TraceContext,
        agent: &str,
    ) -> Result<KeptTrace>;

    /// Returns what is kept of an agent execution; `None` when nothing is.
    async fn trace_of(&self, of: &TraceKey) -> Result<Option<KeptTrace>>;
}

/// Whose trace it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceKey {
    /// The conversation.
    pub conversation_id: String,
    /// The agent execution: of the turn, or of a sub-agent.
    pub agent_execution_id: String,
}

impl TraceKey {
    /// The trace of an agent execution.
    pub fn of(conversation_id: &str, agent_execution_id: &str) -> Self {
        Self {
            conversation_id: conversation_id.to_owned(),
            agent_execution_id: agent_execution_id.to_owned(),
        }
    }

    /// The trace of the turn that this message starts.
    pub fn of_turn(conversation_id: &str, message_id: &str) -> Self {
        let turn = ids::root_agent_execution_id(conversation_id, message_id);
        Self::of(conversation_id, &turn)
    }
}

/// A place in a trace, as W3C Trace Context writes it into headers.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TraceContext {
    /// `traceparent`: the trace, the span above, and whether the trace is recorded.
    pub trace_parent: String,
    /// `tracestate`: what the systems before this one wrote; often empty.
    pub trace_state: String,
}

/// What is kept of an agent execution's trace.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KeptTrace {
    /// The span above the agent's.
    #[sqlx(flatten)]
    pub context: TraceContext,
    /// The agent's name; `None` before it has begun.
    pub agent: Option<String>,
    /// When the agent execution began; `None` before.
    pub begun_at: Option<DateTime<Utc>>,
}
