//! The traces of turns. The traces have a table of their own, and no table of turns refers to traces.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::ids;

use super::Result;

/// Keeps the trace of every turn and sub-agent, so that any process can find the parent of its own span. For gateways
/// and workers that export traces. A process without export never calls this trait.
#[async_trait]
pub trait TraceContexts: Send + Sync {
    /// Keeps the trace context of a turn's request. The first context wins. A missing conversation has no context.
    async fn offer_trace(&self, of: &TraceKey, context: &TraceContext) -> Result<()>;

    /// Notes the beginning of an agent execution at the present time, in the offered context, or in `context` without
    /// an offer. Returns the kept trace. A repeated call returns an equal trace.
    async fn begin_trace(
        &self,
        of: &TraceKey,
        context: &TraceContext,
        agent: &str,
    ) -> Result<KeptTrace>;

    /// Returns the kept trace of an agent execution, if any.
    async fn trace_of(&self, of: &TraceKey) -> Result<Option<KeptTrace>>;
}

/// The agent execution of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceKey {
    /// The conversation.
    pub conversation_id: String,
    /// The agent execution: of the turn, or of a sub-agent.
    pub agent_execution_id: String,
}

impl TraceKey {
    /// Makes the key of an agent execution's trace.
    pub fn of(conversation_id: &str, agent_execution_id: &str) -> Self {
        Self {
            conversation_id: conversation_id.to_owned(),
            agent_execution_id: agent_execution_id.to_owned(),
        }
    }

    /// Makes the key of a turn's trace, from the turn's first message.
    pub fn of_turn(conversation_id: &str, message_id: &str) -> Self {
        let turn = ids::root_agent_execution_id(conversation_id, message_id);
        Self::of(conversation_id, &turn)
    }
}

/// A position in a trace, in the form of W3C Trace Context's headers.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TraceContext {
    /// `traceparent`: the trace, the parent span, and whether the trace is recorded.
    pub trace_parent: String,
    /// `tracestate`: data of earlier systems; often empty.
    pub trace_state: String,
}

/// The kept trace of an agent execution.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KeptTrace {
    /// The parent of the agent's span.
    #[sqlx(flatten)]
    pub context: TraceContext,
    /// The agent's name; `None` before the beginning.
    pub agent: Option<String>,
    /// The time at which the agent execution began; `None` before the beginning.
    pub begun_at: Option<DateTime<Utc>>,
}
