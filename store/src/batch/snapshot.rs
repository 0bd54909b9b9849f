//! What a batch reads from the store.

use chrono::{DateTime, Utc};
use everturn_proto::{
    event::WorkPlan,
    turn::{LlmCompleteState, ToolCall},
};
use sqlx::FromRow;

use crate::{
    api::{StepKey, ToolRecord, ToolResult},
    columns::{MaybeNumber, Sum},
    rows::tools::ToolColumns,
};

/// What a batch reads. Every batch also needs `last_sequence` and `steps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The `llm_complete` of the request's step and the assistant row of that step.
    pub checkpoint: bool,
    /// The `llm_partial` of the request's step.
    pub partial: bool,
    /// The sums over the agent execution's `llm_complete`s.
    pub totals: bool,
    /// Tool records, the assistant rows of their steps and the work plans their events name.
    pub tools: ToolsNeeded,
    /// The row of this message.
    pub message: Option<String>,
    /// The call that started this sub-agent.
    pub delegate_call: Option<String>,
}

/// Which tool records a batch reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolsNeeded {
    /// None.
    #[default]
    None,
    /// This tool execution. When it has no record, the assistant row of the request's step is read instead.
    One(String),
    /// Those of the agent execution that have no observe yet, by step and call index.
    Open,
}

/// What is stored that a batch depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps the agent execution has saved so far.
    pub steps: u32,
    /// `llm_complete` of the request's step.
    pub checkpoint: Option<LlmCompleteState>,
    /// `llm_partial` of the request's step.
    pub partial: Option<LlmCompleteState>,
    /// Sums over the agent execution's LLM calls.
    pub totals: Totals,
    /// Assistant rows of the request's step and of the tools' steps, those that exist.
    pub assistants: Vec<AssistantRow>,
    /// Tool records, see [`ToolsNeeded`].
    pub tools: Vec<ToolRow>,
    /// Work plans that the tools' events name, those that exist.
    pub plans: Vec<WorkPlan>,
    /// The message to take.
    pub message: Option<StoredMessage>,
    /// The call that started the agent execution, for a sub-agent's end.
    pub delegate_call: Option<DelegateCall>,
    /// The time of the transaction.
    pub now: DateTime<Utc>,
}

impl Snapshot {
    /// The record of a tool execution, when it was read.
    pub(super) fn tool(&self, execution_id: &str) -> Option<&ToolRow> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.record.call.execution_id == execution_id)
    }

    /// The assistant's row of a step, when it was read.
    pub(super) fn assistant(&self, step: u32) -> Option<&AssistantRow> {
        self.assistants.iter().find(|row| row.step == step)
    }
}

/// Sums over an agent execution's LLM calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Totals {
    /// Number of calls.
    #[sqlx(try_from = "Sum")]
    pub calls: u32,
    /// Tokens sent.
    #[sqlx(try_from = "Sum")]
    pub input_tokens: u32,
    /// Tokens received.
    #[sqlx(try_from = "Sum")]
    pub output_tokens: u32,
}

/// An assistant's row in `messages`.
#[derive(Debug, Clone, Default, PartialEq, FromRow)]
pub struct AssistantRow {
    /// Its id.
    pub id: String,
    /// The step whose LLM call it is.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The text.
    pub content: String,
    /// The calls, in call order.
    #[sqlx(json)]
    pub tool_calls: Vec<ToolCall>,
    /// Results of the calls that ended, in call order.
    #[sqlx(json)]
    pub tool_results: Vec<ToolResult>,
    /// Of the event with which it entered the timeline.
    #[sqlx(try_from = "i64")]
    pub sequence_number: u32,
}

/// A row of `tool_execution_records`, with its place in the turn.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ToolRow {
    /// The step that asked.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// Its place among the step's calls.
    #[sqlx(try_from = "i64")]
    pub call_index: u32,
    /// The record.
    #[sqlx(flatten, try_from = "ToolColumns")]
    pub record: ToolRecord,
    /// Sequence number of its observe.
    #[sqlx(try_from = "MaybeNumber")]
    pub observed_sequence: Option<u32>,
    /// Until when a person's approval or the client's result is waited for. It is written, not read.
    #[sqlx(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl AssistantRow {
    /// Makes the record of one of its calls anew, as that of a call that has not started; `None` when it has no such
    /// call.
    pub(crate) fn record_of(&self, is_wanted: impl Fn(&ToolCall) -> bool) -> Option<ToolRow> {
        let index = self.tool_calls.iter().position(is_wanted)?;
        let call = self.tool_calls[index].clone();
        Some(ToolRow::pending(self.step, index, call))
    }
}

impl ToolRow {
    /// The row of a call that was asked for and has not started.
    pub(crate) fn pending(step: u32, call_index: usize, call: ToolCall) -> Self {
        Self {
            step,
            call_index: u32::try_from(call_index).unwrap_or(u32::MAX),
            record: ToolRecord::pending(call),
            observed_sequence: None,
            expires_at: None,
        }
    }
}

/// The `delegate` call that started a sub-agent.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct DelegateCall {
    /// When the sub-agent began.
    pub started_at: Option<DateTime<Utc>>,
    /// The call.
    #[sqlx(flatten)]
    pub tool: ToolRow,
    /// The step that asked, when the record of the call is missing and `tool` was made anew from that step's row.
    #[sqlx(skip)]
    pub missing_of: Option<StepKey>,
}

/// A user's message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct StoredMessage {
    /// The text.
    pub content: String,
    /// False when a turn has taken it.
    pub is_waiting: bool,
}
