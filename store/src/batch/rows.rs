//! The rows of a batch, written in one transaction.

use everturn_proto::{
    Json,
    event::WorkPlan,
    turn::{SaveResult, SavedApproval, ToolCall},
    words::{AgentExecutionStatus, ApprovalState, EventType},
};

use super::{AssistantRow, ToolRow};
use crate::api::{AgentEnd, DefinedTool, Spent, StepKey, ToolEnd, WaitingHooks};

/// The rows of one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The key, which names the batch's role in the turn; made by [`super::key`].
    pub key: String,
    /// Events to append, already numbered.
    pub events: Vec<NewEvent>,
    /// The user message that enters the timeline.
    pub taken: Option<TakenMessage>,
    /// The assistant row to insert.
    pub assistant: Option<AssistantRow>,
    /// The new start of the thread's context.
    pub context_cut: Option<ContextCut>,
    /// Tool records to insert.
    pub pending_tools: Vec<ToolRow>,
    /// The tool record with a question that waits for a person.
    pub asked_tool: Option<ToolRow>,
    /// The tool record with a granted approval. The tool may run now, with the record's input.
    pub approved_tool: Option<ToolRow>,
    /// The id of an assistant row, and its calls for the model. One call has a person's edited input.
    pub edited_calls: Option<(String, Vec<ToolCall>)>,
    /// The answer to an approval.
    pub saved_answer: Option<SavedAnswer>,
    /// The tool that needs no more approvals in the conversation.
    pub granted_tool: Option<DefinedTool>,
    /// Records of ended tools, observed by the batch. Missing records are inserted.
    pub observed_tools: Vec<ObservedTool>,
    /// The steps of `observed_tools`.
    pub observed_steps: Vec<ObservedStep>,
    /// The record of an observed call whose outcome a person has settled. The new end replaces "unknown".
    pub settled_tool: Option<ToolRow>,
    /// Work plans to insert or replace.
    pub plans: Vec<WorkPlan>,
    /// Number of user messages and final assistant messages added by the batch. Lists of conversations show the total.
    pub new_messages: u32,
    /// Number of the agent execution's saved steps, including the batch.
    pub steps: u32,
    /// The end of the agent execution; `None` when the agent execution goes on.
    pub end: Option<AgentEnd>,
    /// The hooks after the turn that the batch completes; `None` without hooks, and for every other batch.
    pub hooks: Option<WaitingHooks>,
    /// The sums over the LLM calls of the turn that the batch ends. Zero for every other batch: a sub-agent's calls are in
    /// the sums of its turn.
    pub spent: Spent,
    /// The end of the call that started the agent execution.
    pub delegate_call_end: Option<DelegateCallEnd>,
    /// The conversation's largest sequence number after the batch.
    pub last_sequence: u32,
    /// The title for a conversation without a title.
    pub title: Option<String>,
    /// True for the first batch of a turn, also when the turn's message is already in the timeline.
    pub begins_turn: bool,
}

impl Batch {
    /// Returns true when the batch changes the conversation in lists: a turn begins or ends, a message is added, or a call
    /// begins or ends to wait for a person or the client. Lists do not show the other saves of a running turn, so these
    /// saves move neither `active_at` nor the versions of lists.
    pub(crate) fn changes_lists(&self) -> bool {
        let ends_turn = self.end.is_some() && self.delegate_call_end.is_none();
        let mut begun = self.pending_tools.iter().chain(&self.asked_tool);
        let begins_wait = begun.any(ToolRow::waits);
        // Only the batch itself ends a waiting call whose end is not stored, for example of a cancelled turn.
        let closes_calls = self
            .observed_tools
            .iter()
            .any(|observed| !observed.is_recorded);
        let ends_wait = self.saved_answer.is_some() || closes_calls;
        self.begins_turn || ends_turn || self.new_messages > 0 || begins_wait || ends_wait
    }

    /// Returns the answer of a save that has written the batch.
    pub(crate) fn result(&self) -> SaveResult {
        let end = self.end.as_ref();
        let status = end.map_or(&AgentExecutionStatus::Running, |end| &end.status);
        SaveResult {
            status: status.into(),
            last_sequence: self.last_sequence,
            approval_saved: self.saved_answer.as_ref().map(|saved| SavedApproval {
                decision: (&saved.decision).into(),
                answer_id: saved.answer_id.clone(),
            }),
            ..SaveResult::default()
        }
    }
}

/// The answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAnswer {
    /// The tool execution of the call.
    pub execution_id: String,
    /// How the approval was answered.
    pub decision: ApprovalState,
    /// The id of the answer; `None` when nobody answered.
    pub answer_id: Option<String>,
}

/// An event to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The event's id, made by [`super::event_id`].
    pub id: String,
    /// The message that the event belongs to.
    pub message_id: String,
    /// The event's type.
    pub event_type: EventType,
    /// The event's data.
    pub data: Json,
    /// Sequence number in the conversation, from 1.
    pub sequence_number: u32,
}

/// A user message that enters the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenMessage {
    /// Id of the message.
    pub id: String,
    /// The text, when the message has no row yet.
    pub new_content: Option<String>,
    /// Sequence number of the message's event.
    pub sequence_number: u32,
}

/// The start of a thread's context. Earlier messages are no longer sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextCut {
    /// The last event whose message is no longer sent.
    pub through_sequence: u32,
    /// The summary for the model; empty when the model is only told about left-out messages.
    pub summary: String,
    /// Messages before the cut that the model still gets: the questions of the turn's user.
    pub kept_message_ids: Vec<String>,
}

/// A tool that the batch observes.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTool {
    /// The tool's record, with its end.
    pub tool: ToolRow,
    /// True when the end is stored already. Only the record's observe is new.
    pub is_recorded: bool,
    /// True when the batch ends a tool execution that has begun, or may have begun. The end gets its checkpoint
    /// `tool_complete`.
    pub ends_run: bool,
}

/// A step with calls that the batch observes. With the last observe, the step's assistant row gets the results of the
/// step's calls from their records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedStep {
    /// The id of the assistant row.
    pub assistant_message_id: String,
    /// The tool executions of the step's calls.
    pub execution_ids: Vec<String>,
}

/// The end of the call that started a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateCallEnd {
    /// The agent execution that made the call.
    pub asked_by: String,
    /// The row of the call.
    pub tool: ToolRow,
    /// How the call ends.
    pub end: ToolEnd,
    /// The step that asked for the call, if the call's record is missing and must be inserted.
    pub missing_of: Option<StepKey>,
}
