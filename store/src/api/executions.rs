//! The tree of agent executions: turns and their sub-agents.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    words::{AgentExecutionStatus, ApprovalState, CheckpointType, Effect, ToolStatus},
};
use sqlx::{FromRow, types::Json as Column};

use super::{Access, Result, Spent};

/// Reads the tree of agent executions. For gateways.
#[async_trait]
pub trait AgentExecutions: Send + Sync {
    /// Returns the conversation's agent executions in the order of their beginnings, at most `limit` of those behind
    /// `after`; of the turn of the message `turn` alone, when one is named. The list is flat: each names its parent. An
    /// unknown conversation has none.
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        turn: Option<&str>,
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

    /// Returns the checkpoints of an agent execution: the newest `limit` of them, in the order of their steps.
    async fn checkpoints(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<Checkpoint>>;

    /// Returns the tool calls of an agent execution: the newest `limit` of them, in the order in which they were asked
    /// for.
    async fn tool_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<ToolExecution>>;
}

/// A stored point from which a turn can go on.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Checkpoint {
    /// What had happened.
    #[sqlx(try_from = "String")]
    pub checkpoint_type: CheckpointType,
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The tool execution that began; `None` for a checkpoint of a model's reply.
    pub execution_id: Option<String>,
    /// Which try stored it: of the agent execution's LLM calls, or of the tool. 0 where no model was called.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// When it was stored.
    pub stored_at: DateTime<Utc>,
}

/// A tool call being carried out, without its input and its result.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ToolExecution {
    /// Its id.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The step that asked for it, from 0; `ids::AFTER_TURN_STEP` for a hook after the turn.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// How it stands.
    #[sqlx(try_from = "String")]
    pub status: ToolStatus,
    /// What may be done again when it was cut off.
    #[sqlx(try_from = "String")]
    pub effect: Effect,
    /// How its approval stands.
    #[sqlx(try_from = "String")]
    pub approval: ApprovalState,
    /// How often a worker has begun it.
    #[sqlx(try_from = "i64")]
    pub attempts: u32,
    /// The tool, or whoever ended it, says that it failed.
    pub is_error: bool,
    /// How long it may run.
    #[sqlx(try_from = "i64")]
    pub timeout_ms: u32,
    /// How long it ran.
    #[sqlx(try_from = "i64")]
    pub duration_ms: u32,
    /// When it was asked for.
    pub asked_at: DateTime<Utc>,
    /// When it was begun for the first time.
    pub started_at: Option<DateTime<Utc>>,
    /// When its end was recorded.
    pub finished_at: Option<DateTime<Utc>>,
}

/// What the LLM call of one step took.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct StepUsage {
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// Which try of the agent execution's LLM calls answered, from 1.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// The model that answered; `None` where an earlier release stored none.
    pub model: Option<String>,
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
