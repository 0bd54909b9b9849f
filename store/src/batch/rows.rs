//! What a batch consists of: the rows of one transaction.

use everturn_proto::{
    Json,
    event::WorkPlan,
    turn::ToolCall,
    words::{AgentExecutionStatus, EventType},
};

use super::{AssistantRow, ToolRow};
use crate::api::{StepKey, ToolEnd, ToolResult};

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
    /// Tool records that have ended and are observed now. One that is missing is inserted.
    pub observed_tools: Vec<ToolRow>,
    /// Tool results to store in assistant rows.
    pub results: Vec<StepResults>,
    /// Work plans to insert or replace.
    pub plans: Vec<WorkPlan>,
    /// User messages and final assistant messages that this batch adds: what lists count.
    pub new_messages: u32,
    /// Steps the agent execution has saved, this batch included.
    pub steps: u32,
    /// How the agent execution ends.
    pub end: Option<NewStatus>,
    /// How the call ends that started the agent execution.
    pub delegate_call_end: Option<DelegateCallEnd>,
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
    pub event_type: EventType,
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

/// The end of the call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateCallEnd {
    /// The call.
    pub tool: ToolRow,
    /// How it ends.
    pub end: ToolEnd,
    /// The step that asked, when the record of the call is missing: then it is inserted.
    pub missing_of: Option<StepKey>,
}

/// How an agent execution stands after its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStatus {
    /// A status that is final.
    pub status: AgentExecutionStatus,
    /// Code of the error event.
    pub error_code: Option<String>,
}
