//! The tree of agent executions: turns and their sub-agents (D3, D4).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::Json;

use super::{Access, Result};

/// Reads the tree of executions. For gateways.
#[async_trait]
pub trait AgentExecutions: Send + Sync {
    /// The conversation's executions in the order of their beginnings, at most `limit` of those behind `after`. Flat:
    /// each names its parent. Unknown conversation: none.
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        after: Option<AgentExecutionPlace>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>>;

    /// One of them.
    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>>;
}

/// A place in the list of executions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentExecutionPlace {
    /// `started_at` of the row.
    pub started_at: DateTime<Utc>,
    /// Its id, which breaks ties.
    pub id: String,
}

/// An agent execution: a turn, or a sub-agent's part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentExecution {
    /// Its id.
    pub id: String,
    /// The message whose turn it is part of.
    pub message_id: String,
    /// The agent.
    pub agent: String,
    /// One of `words::execution_status`.
    pub status: String,
    /// 0 for a turn.
    pub depth: u32,
    /// Who delegated; none for a turn.
    pub parent_execution_id: Option<String>,
    /// The turn; its own id for a turn.
    pub root_execution_id: String,
    /// LLM calls saved so far.
    pub steps: u32,
    /// Code of its `error` event.
    pub error_code: Option<String>,
    /// Tokens sent, its sub-agents' not included.
    pub input_tokens: u32,
    /// Tokens received, its sub-agents' not included.
    pub output_tokens: u32,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The call that started it; none for a turn.
    pub parent_call: Option<ParentCall>,
}

/// The tool call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentCall {
    /// Our id of the call.
    pub execution_id: String,
    /// The model's.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_input: Json,
}
