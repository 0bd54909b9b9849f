//! The rows that a batch consists of. They are written in one transaction.

use everturn_proto::{
    Json,
    event::WorkPlan,
    turn::{SaveResult, ToolCall},
    words::{AgentExecutionStatus, EventType},
};

use super::{AssistantRow, ToolRow};
use crate::api::{AgentEnd, DefinedTool, StepKey, ToolEnd};

/// The rows of one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The key, which names the batch's role in the turn; [`super::key`] makes it.
    pub key: String,
    /// Events to append, already numbered.
    pub events: Vec<NewEvent>,
    /// The user message that enters the timeline.
    pub taken: Option<TakenMessage>,
    /// The assistant row to insert.
    pub assistant: Option<AssistantRow>,
    /// Where the context of the thread begins from now on.
    pub context_cut: Option<ContextCut>,
    /// Tool records to insert.
    pub pending_tools: Vec<ToolRow>,
    /// The tool record whose approval was given: the tool may run now, with the input that this record has.
    pub approved_tool: Option<ToolRow>,
    /// The id of an assistant row, and its calls as the model will see them: one has the input that a person gave.
    pub edited_calls: Option<(String, Vec<ToolCall>)>,
    /// The tool that the conversation asks no more approvals for.
    pub granted_tool: Option<DefinedTool>,
    /// Tool records that have ended and are observed now. Those that are missing are inserted.
    pub observed_tools: Vec<ObservedTool>,
    /// The steps of these records.
    pub observed_steps: Vec<ObservedStep>,
    /// Work plans to insert or replace.
    pub plans: Vec<WorkPlan>,
    /// Number of user messages and final assistant messages that this batch adds. Lists of conversations show this
    /// number.
    pub new_messages: u32,
    /// Number of steps that the agent execution has saved, this batch included.
    pub steps: u32,
    /// How the agent execution ends; `None` when it goes on.
    pub end: Option<AgentEnd>,
    /// How the call that started the agent execution ends.
    pub delegate_call_end: Option<DelegateCallEnd>,
    /// The conversation's largest sequence number after this batch.
    pub last_sequence: u32,
    /// The title that the conversation gets, unless it has one.
    pub title: Option<String>,
}

impl Batch {
    /// Returns what a save answers that has written this batch.
    pub(crate) fn result(&self) -> SaveResult {
        let end = self.end.as_ref();
        let status = end.map_or(&AgentExecutionStatus::Running, |end| &end.status);
        SaveResult {
            status: status.into(),
            last_sequence: self.last_sequence,
            ..SaveResult::default()
        }
    }
}

/// An event to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its id, made by [`super::event_id`].
    pub id: String,
    /// The message that it belongs to.
    pub message_id: String,
    /// Its type.
    pub event_type: EventType,
    /// Its data.
    pub data: Json,
    /// Its sequence number in the conversation, from 1.
    pub sequence_number: u32,
}

/// A user message that enters the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenMessage {
    /// Id of the message.
    pub id: String,
    /// The text, when the message has no row yet.
    pub new_content: Option<String>,
    /// Sequence number of its event.
    pub sequence_number: u32,
}

/// Where the context of a thread begins: what is before is no longer sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextCut {
    /// The last event whose message is not sent any more.
    pub through_sequence: u32,
    /// What the model is told instead; empty when it is only told that something is left out.
    pub summary: String,
    /// Messages before the cut that are sent on: what the person of the turn has asked.
    pub kept_message_ids: Vec<String>,
}

/// A tool that the batch observes.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTool {
    /// Its record, with its end.
    pub tool: ToolRow,
    /// True when this end is stored already, so that nothing of the record but its observe is new.
    pub is_recorded: bool,
}

/// A step with calls that the batch observes. With the last of them, its assistant row gets the results of all its calls
/// from their records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedStep {
    /// The id of the assistant row.
    pub assistant_message_id: String,
    /// The tool executions of all calls of the step.
    pub execution_ids: Vec<String>,
}

/// The end of the call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateCallEnd {
    /// The row of the call.
    pub tool: ToolRow,
    /// How the call ends.
    pub end: ToolEnd,
    /// The step that asked for the call. It is set when the record of the call is missing, which is then inserted.
    pub missing_of: Option<StepKey>,
}
