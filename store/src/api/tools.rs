//! Steps and tool executions: their keys, records, claims and ends.

use everturn_proto::{
    Json,
    turn::ToolCall,
    words::{ApprovalState, EventType, ToolStatus},
};
use prost::Message;

/// One step of one agent execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The conversation.
    pub conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution.
    pub agent_execution_id: String,
    /// The number of the step in its agent execution, from 0.
    pub step: u32,
    /// The epoch of the run that asks (invariant 11, one run); `None`: a run of an earlier release, or the store itself.
    pub epoch: Option<u32>,
}

/// One tool execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolKey {
    /// The conversation.
    pub conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution that asked.
    pub agent_execution_id: String,
    /// The step that asked.
    pub step: u32,
    /// The tool execution.
    pub execution_id: String,
    /// The epoch of the run that asks (invariant 11, one run); `None`: a run of an earlier release, or the store itself.
    pub epoch: Option<u32>,
}

impl ToolKey {
    /// The step that asked.
    pub(crate) fn step_key(&self) -> StepKey {
        StepKey {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            epoch: self.epoch,
        }
    }
}

/// Answer to a claim of a tool execution.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolClaim {
    /// Run it.
    Run {
        /// The record as it is from now on.
        record: ToolRecord,
        /// The one for whom it runs.
        caller: ToolCaller,
    },
    /// It ended before; use the record.
    Ended(ToolRecord),
    /// An earlier attempt began and left nothing, and the tool may not run twice.
    OutcomeUnknown(ToolRecord),
}

/// The one for whom a tool runs, as the store knows it. Nothing of it comes from a model, from a message or from the run
/// that asks.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ToolCaller {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The owner of the conversation, when it has one.
    pub owner_id: Option<String>,
    /// The name of the conversation in its tenant.
    pub conversation_name: String,
    /// The name of the agent that calls.
    pub agent: String,
    /// How deep its agent execution is: 0 for the turn's own agent, 1 for a sub-agent of it, and so on.
    #[sqlx(try_from = "i64")]
    pub depth: u32,
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    /// A status that is final.
    pub status: ToolStatus,
    /// What the model and the readers see.
    pub result: Json,
    /// The whole result when `result` was cut: a JSON string of its text, to the letter.
    pub full_result: Option<Json>,
    /// True when `result` describes an error.
    pub is_error: bool,
    /// How long it ran by the clock, for the observe event.
    pub duration_ms: u32,
    /// Events that the tool itself emits, saved before its observe: (type, data).
    pub events: Vec<(EventType, Json)>,
}

/// A row of `tool_execution_records`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRecord {
    /// The call as the model made it; its input as it was approved.
    pub call: ToolCall,
    /// How the tool execution stands.
    pub status: ToolStatus,
    /// Attempts that were allowed to run, this one included.
    pub attempt: u32,
    /// How it ended, once it has.
    pub end: Option<ToolEnd>,
    /// How its approval stands.
    pub approval: ApprovalState,
}

impl ToolRecord {
    /// The record of a call that was asked for and has not started.
    pub fn pending(call: ToolCall) -> Self {
        Self {
            call,
            status: ToolStatus::Pending,
            attempt: 0,
            end: None,
            approval: ApprovalState::NotNeeded,
        }
    }

    /// How long it is, about.
    pub(crate) fn bytes(&self) -> usize {
        let ends = self.end.iter().map(|end| {
            let events = end.events.iter().map(|(_, data)| data.as_str().len());
            end.result.as_str().len() + events.sum::<usize>()
        });
        self.call.encoded_len() + ends.sum::<usize>()
    }
}

/// A tool, with the definition that a person has approved, or that a conversation has used.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DefinedTool {
    /// Its name.
    pub tool_name: String,
    /// The hash of the definition; empty when it is not known.
    pub definition_hash: String,
}

/// The result of one tool call as the model sees it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolResult {
    /// The id of the tool execution, which is ours.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its result.
    pub result: Json,
    /// True when the result describes an error.
    pub is_error: bool,
}
