//! The tree of agent executions: turns and their sub-agents.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    words::{AgentExecutionStatus, ApprovalState, CheckpointType, Effect, ToolStatus},
};
use sqlx::{FromRow, types::Json as Column};

use super::{Access, Result, Spent, WaitingCall};

/// Reads the tree of agent executions. For gateways.
#[async_trait]
pub trait AgentExecutions: Send + Sync {
    /// Returns the conversation's agent executions in the order of their beginnings, at most `limit` behind `after`.
    /// `turn` limits the list to the turn of the message. The list is flat, and every agent execution names its parent.
    /// An unknown conversation has an empty list.
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        turn: Option<&str>,
        after: Option<AgentExecutionCursor>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>>;

    /// Returns an agent execution by its id.
    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>>;

    /// Returns the call of the conversation's running turn that waits for its provider after a refusal; of several
    /// calls, the call that is made next.
    async fn waiting_call(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<WaitingCall>>;

    /// Returns the usage of an agent execution's LLM calls with stored replies: the newest `limit` calls, in the order
    /// of their steps.
    async fn step_usage(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<StepUsage>>;

    /// Returns the newest `limit` checkpoints of an agent execution, in the order of their steps.
    async fn checkpoints(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<Checkpoint>>;

    /// Returns the newest `limit` tool executions of an agent execution, in the order of their requests.
    async fn tool_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<ToolExecution>>;
}

/// A stored point at which a turn can continue.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Checkpoint {
    /// The kind of the stored point.
    #[sqlx(try_from = "String")]
    pub checkpoint_type: CheckpointType,
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The started tool execution; `None` for the checkpoint of a model's reply.
    pub execution_id: Option<String>,
    /// The try that stored the checkpoint: the generation of the LLM call, or the tool's attempt. 0 without a model
    /// call.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// The time of storing.
    pub stored_at: DateTime<Utc>,
}

/// A tool execution, without its input and its result.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ToolExecution {
    /// The id.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The step of the tool call, from 0; `ids::AFTER_TURN_STEP` for a hook after the turn.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The status.
    #[sqlx(try_from = "String")]
    pub status: ToolStatus,
    /// The tool's effect: whether a worker may run the tool again after a break.
    #[sqlx(try_from = "String")]
    pub effect: Effect,
    /// The state of the approval.
    #[sqlx(try_from = "String")]
    pub approval: ApprovalState,
    /// The number of attempts.
    #[sqlx(try_from = "i64")]
    pub attempts: u32,
    /// True if the tool execution ended with an error.
    pub is_error: bool,
    /// The time limit.
    #[sqlx(try_from = "i64")]
    pub timeout_ms: u32,
    /// The duration.
    #[sqlx(try_from = "i64")]
    pub duration_ms: u32,
    /// The time of the request.
    pub asked_at: DateTime<Utc>,
    /// The time of the first attempt.
    pub started_at: Option<DateTime<Utc>>,
    /// The time at which the end was recorded.
    pub finished_at: Option<DateTime<Utc>>,
}

/// The usage of a step's LLM call.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct StepUsage {
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The generation of the LLM call with the stored reply, from 1.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// The model that answered; `None` for a step of hooks, which calls no model.
    pub model: Option<String>,
    /// The usage and cost.
    #[sqlx(flatten)]
    pub spent: Spent,
    /// The time at which the reply was stored.
    pub stored_at: DateTime<Utc>,
}

/// A cursor in the list of agent executions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentExecutionCursor {
    /// `started_at` of the row.
    pub started_at: DateTime<Utc>,
    /// The row's id, which breaks ties.
    pub id: String,
}

/// An agent execution: of a turn or of a sub-agent.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct AgentExecution {
    /// The id.
    pub id: String,
    /// The first message of the turn.
    pub message_id: String,
    /// The agent.
    pub agent: String,
    /// The status.
    #[sqlx(try_from = "String")]
    pub status: AgentExecutionStatus,
    /// 0 for a turn.
    #[sqlx(try_from = "i64")]
    pub depth: u32,
    /// The parent agent execution; `None` for a turn.
    pub parent_execution_id: Option<String>,
    /// The turn's agent execution. For a turn: its own id.
    pub root_execution_id: String,
    /// The number of saved LLM calls.
    #[sqlx(try_from = "i64")]
    pub steps: u32,
    /// The code of the `error` event.
    pub error_code: Option<String>,
    /// The usage of the agent execution's LLM calls, without its sub-agents' calls.
    #[sqlx(flatten)]
    pub spent: Spent,
    /// The time of the beginning.
    pub started_at: DateTime<Utc>,
    /// The time of the end.
    pub finished_at: Option<DateTime<Utc>>,
    /// The tool call that started the sub-agent; `None` for a turn.
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
    /// The model's arguments.
    pub tool_input: Json,
}

/// The columns of a sub-agent's parent call. A turn has no parent call.
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
