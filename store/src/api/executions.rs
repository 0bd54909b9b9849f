//! The tree of agent executions: turns and their sub-agents.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Json, words::AgentExecutionStatus};
use sqlx::{FromRow, types::Json as Column};

use super::{Access, Result, Spent};

/// Reads the tree of agent executions. For gateways.
#[async_trait]
pub trait AgentExecutions: Send + Sync {
    /// Returns the conversation's agent executions in the order of their beginnings, at most `limit` of those behind
    /// `after`. The list is flat: each names its parent. An unknown conversation has none.
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        after: Option<AgentExecutionPlace>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>>;

    /// Returns one of them.
    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>>;

    /// Returns what each LLM call of an agent execution took whose answer was stored: the newest `limit` of them, in the
    /// order of their steps.
    async fn step_usage(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<StepUsage>>;
}

/// What the LLM call of one step took.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct StepUsage {
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The model that answered; empty where an earlier release stored none.
    pub model: String,
    /// What it took.
    #[sqlx(flatten)]
    pub spent: Spent,
    /// When the answer was stored.
    pub stored_at: DateTime<Utc>,
}

/// A place in the list of agent executions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentExecutionPlace {
    /// `started_at` of the row.
    pub started_at: DateTime<Utc>,
    /// Its id, which breaks ties.
    pub id: String,
}

/// An agent execution: a turn, or a sub-agent's part of one.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct AgentExecution {
    /// Its id.
    pub id: String,
    /// The message whose turn it is part of.
    pub message_id: String,
    /// The agent.
    pub agent: String,
    /// How it stands.
    #[sqlx(try_from = "String")]
    pub status: AgentExecutionStatus,
    /// 0 for a turn.
    #[sqlx(try_from = "i64")]
    pub depth: u32,
    /// The agent execution that delegated; `None` for a turn.
    pub parent_execution_id: Option<String>,
    /// The turn's agent execution: its own id when it is a turn.
    pub root_execution_id: String,
    /// LLM calls saved so far.
    #[sqlx(try_from = "i64")]
    pub steps: u32,
    /// Code of its `error` event.
    pub error_code: Option<String>,
    /// What its LLM calls took, without those of its sub-agents.
    #[sqlx(flatten)]
    pub spent: Spent,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The tool call that started it; `None` for a turn.
    #[sqlx(flatten, try_from = "ParentCallColumns")]
    pub parent_call: Option<ParentCall>,
}

/// The tool call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentCall {
    /// The tool execution.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments that the model gave it.
    pub tool_input: Json,
}

/// The call that started an agent execution; nothing of a turn's own.
#[derive(FromRow)]
struct ParentCallColumns {
    execution_id: Option<String>,
    call_id: Option<String>,
    tool_name: Option<String>,
    tool_input: Option<Column<Json>>,
}

impl From<ParentCallColumns> for Option<ParentCall> {
    fn from(columns: ParentCallColumns) -> Self {
        Some(ParentCall {
            execution_id: columns.execution_id?,
            call_id: columns.call_id?,
            tool_name: columns.tool_name?,
            tool_input: columns.tool_input?.0,
        })
    }
}
