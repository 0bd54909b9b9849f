//! The displayable items of a conversation. The fields are those of `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::calls::{SubAgentState, ToolCall, ToolResult};
use crate::words::{FinishReason, NoteEvent, PlanStepStatus};

/// Prefix of the codes of failed LLM calls, including codes newer than this version.
const LLM_ERRORS: &str = "llm_";

/// One displayable item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Unique in the conversation.
    pub id: String,
    /// The sequence number of the item's event.
    pub sequence_number: u64,
    /// Milliseconds since 1970; 0 when unknown.
    pub timestamp: i64,
    /// The message id of the item's turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The LLM call that the item belongs to, from 0. Calls of one step run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The agent execution, only for a sub-agent's item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// The id of the call that started the sub-agent, only for a sub-agent's item. The item belongs under the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// The item's kind and content.
    #[serde(flatten)]
    pub kind: ItemKind,
}

/// The kinds of items.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum ItemKind {
    /// A message of the user.
    UserMessage {
        /// The text.
        content: String,
        /// `blob_id`, `media_type`, `file_name` and `bytes` of every file.
        #[serde(skip_serializing_if = "Option::is_none")]
        attachments: Option<Value>,
        /// The message whose failed turn the user has retried. A retry has no text.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_of: Option<String>,
    },
    /// The model's text before its tool calls, and its reasoning. The text or the reasoning is not blank.
    Thought {
        /// The text for the user; empty if the model only reasoned.
        content: String,
        /// The reasoning.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// The sources that the text cites.
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Vec<Citation>>,
    },
    /// A tool call and its outcome.
    ToolCall(Box<ToolCall>),
    /// The end of a tool whose call is unknown, because the items begin after the call.
    ToolResult(Box<ToolResult>),
    /// An answer of the agent.
    AssistantMessage {
        /// The text.
        content: String,
        /// True for the text so far of a cancelled turn.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
        /// The reason for the end of the text.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<FinishReason>,
        /// The sources that the text cites.
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Vec<Citation>>,
    },
    /// A plan made by the agent. The item keeps its position while its steps progress.
    WorkPlan(WorkPlan),
    /// A small event worth showing: a fallback to another model, a compaction, a skill.
    Note {
        /// The type of the event.
        event: NoteEvent,
        /// The event's own fields, as on the wire (`docs/api/events.md`).
        data: Map<String, Value>,
    },
    /// The end of a turn or of a sub-agent.
    End(Box<End>),
}

/// A source that a text cites. At least the address or the title is present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// The address of the source, with `http` or `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The cited passage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A plan made by the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkPlan {
    /// The plan's id. A later plan with the same id replaces the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The plan's title.
    pub title: String,
    /// The plan's steps.
    pub steps: Vec<PlanStep>,
}

/// A step of a work plan, unrelated to LLM calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// The plan step's number.
    pub step_number: u64,
    /// The plan step's task.
    pub description: String,
    /// The plan step's status.
    pub status: PlanStepStatus,
}

/// The end of a turn or of a sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The type of the event.
    pub outcome: EndKind,
    /// The stable code of an error, documented in `docs/errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A sentence for people about an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The reason of a cancel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason for the end of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Number of LLM calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tokens, including every sub-agent's, as on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The cost in US dollars, as a decimal number in a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// The value of the answer, when the agent has an output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl End {
    /// Returns true when a failed LLM call ended the turn or the sub-agent.
    pub fn is_llm_error(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.outcome == EndKind::Error && code.starts_with(LLM_ERRORS)
    }
}

/// The events that end a turn or a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// The turn or the sub-agent was answered.
    Complete,
    /// The turn or the sub-agent failed.
    Error,
    /// The turn or the sub-agent was cancelled.
    Cancelled,
}

impl EndKind {
    /// Returns the kind of end for an event type; `None` for other events.
    pub(super) fn of(event_type: &str) -> Option<Self> {
        match event_type {
            "complete" => Some(Self::Complete),
            "error" => Some(Self::Error),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// Returns the type of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<EndKind> for SubAgentState {
    fn from(end: EndKind) -> Self {
        match end {
            EndKind::Complete => Self::Complete,
            EndKind::Error => Self::Error,
            EndKind::Cancelled => Self::Cancelled,
        }
    }
}
