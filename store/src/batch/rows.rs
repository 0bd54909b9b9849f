//! What a batch is built from and what it consists of.

use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    event::WorkPlan,
    turn::{LlmCompleteState, ToolCall},
};

use crate::api::{ToolEnd, ToolRecord, ToolResult};

/// What a batch reads. Every batch also needs `last_sequence` and `steps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The `llm_complete` of the request's step and the assistant row of that step.
    pub checkpoint: bool,
    /// The `llm_partial` of the request's step.
    pub partial: bool,
    /// The sums over the execution's `llm_complete`s.
    pub totals: bool,
    /// Tool records, the assistant rows of their steps and the work plans their events name.
    pub tools: ToolsNeeded,
    /// The row of this message.
    pub message: Option<String>,
    /// The call that started this sub-agent.
    pub delegation: Option<String>,
}

/// Which tool records a batch reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolsNeeded {
    /// None.
    #[default]
    None,
    /// This tool execution.
    One(String),
    /// Those of the agent execution that have no observe yet, by step and call index.
    Open,
}

/// What is stored that a batch depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps the execution has saved so far.
    pub steps: u32,
    /// `llm_complete` of the request's step.
    pub checkpoint: Option<LlmCompleteState>,
    /// `llm_partial` of the request's step.
    pub partial: Option<LlmCompleteState>,
    /// Sums over the execution's LLM calls.
    pub totals: Totals,
    /// Assistant rows of the request's step and of the tools' steps, those that exist.
    pub assistants: Vec<AssistantRow>,
    /// Tool records, see [`ToolsNeeded`].
    pub tools: Vec<ToolRow>,
    /// Work plans that the tools' events name, those that exist.
    pub plans: Vec<WorkPlan>,
    /// The message to take.
    pub message: Option<WaitingMessage>,
    /// The call that started the execution, of a sub-agent's end.
    pub delegation: Option<Delegation>,
    /// The time of the transaction.
    pub now: DateTime<Utc>,
}

/// Sums over an execution's LLM calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of calls.
    pub calls: u32,
    /// Tokens sent.
    pub input_tokens: u32,
    /// Tokens received.
    pub output_tokens: u32,
}

/// An assistant's row in `messages`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssistantRow {
    /// Its id.
    pub id: String,
    /// The step whose LLM call it is.
    pub step: u32,
    /// The text.
    pub content: String,
    /// The calls, in call order.
    pub tool_calls: Vec<ToolCall>,
    /// Results of the calls that ended, in call order.
    pub tool_results: Vec<ToolResult>,
    /// Of the event with which it entered the timeline.
    pub sequence_number: u32,
}

/// A row of `tool_execution_records` with its place in the turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRow {
    /// The step that asked.
    pub step: u32,
    /// Its place among the step's calls.
    pub call_index: u32,
    /// The record.
    pub record: ToolRecord,
    /// Sequence number of its observe.
    pub observed_sequence: Option<u32>,
    /// Until when a person's approval or the client's result is waited for.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The `delegate` call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegation {
    /// When the sub-agent began.
    pub started_at: Option<DateTime<Utc>>,
    /// The call.
    pub record: ToolRecord,
}

/// A user's message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The text.
    pub content: String,
    /// False when a turn has taken it.
    pub is_waiting: bool,
}

/// The rows of one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Names the batch's role; see [`super::key`].
    pub key: String,
    /// Events to append, already numbered.
    pub events: Vec<NewEvent>,
    /// The user message that enters the timeline.
    pub taken: Option<TakenMessage>,
    /// The assistant row to insert.
    pub assistant: Option<AssistantRow>,
    /// Tool records to insert.
    pub pending_tools: Vec<ToolRow>,
    /// The tool record whose approval was given: it may run now, with the input it has now.
    pub approved_tool: Option<ToolRow>,
    /// The calls of an assistant row, one of them with the input that a person gave: what the model will see.
    pub edited_calls: Option<(String, Vec<ToolCall>)>,
    /// The tool for which no more approvals are asked in the conversation.
    pub granted_tool: Option<String>,
    /// Tool records to update: ended and observed.
    pub observed_tools: Vec<ToolRow>,
    /// Tool results to store in assistant rows.
    pub results: Vec<StepResults>,
    /// Work plans to insert or replace.
    pub plans: Vec<WorkPlan>,
    /// User and final assistant messages this batch adds (B8).
    pub new_messages: u32,
    /// Steps the execution has saved, this batch included.
    pub steps: u32,
    /// How the execution ends.
    pub end: Option<End>,
    /// How the call ends that started it: (tool execution, end).
    pub delegation_end: Option<(String, ToolEnd)>,
    /// The conversation's largest sequence number after this batch.
    pub last_sequence: u32,
}

/// An event to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// See [`super::event_id`].
    pub id: String,
    /// The message it belongs to.
    pub message_id: String,
    /// Its type.
    pub event_type: String,
    /// Its data.
    pub data: Json,
    /// Its place in the conversation.
    pub sequence_number: u32,
}

/// A user message that enters the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenMessage {
    /// Its id.
    pub id: String,
    /// Its text when it has no row yet.
    pub new_content: Option<String>,
    /// Of its event.
    pub sequence_number: u32,
}

/// The tool results of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResults {
    /// The assistant row they belong to.
    pub assistant_message_id: String,
    /// All of them so far, in call order.
    pub tool_results: Vec<ToolResult>,
}

/// How an execution ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// One of the final `execution_status`.
    pub status: String,
    /// Code of the error event.
    pub error_code: Option<String>,
}
