//! What a person is shown of a conversation. The fields are those of `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::calls::{ToolCall, ToolResult};
use crate::words::{FinishReason, NoteEvent, PlanStepStatus};

/// The codes of errors of LLM calls begin so, also those that are newer than this version.
const LLM_ERRORS: &str = "llm_";

/// One thing that a person is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Unique in the conversation.
    pub id: String,
    /// The place of its event.
    pub sequence_number: u64,
    /// Milliseconds since 1970; 0 when it is not known.
    pub timestamp: i64,
    /// The message id of its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The LLM call that it belongs to, from 0. Calls of one step run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Of a sub-agent's item: its agent execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// Of a sub-agent's item: the id of the call that started the sub-agent, under which it belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// What it is.
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
    /// What the user said.
    UserMessage {
        /// The text.
        content: String,
        /// `blob_id`, `media_type`, `file_name` and `bytes` of each file.
        #[serde(skip_serializing_if = "Option::is_none")]
        attachments: Option<Value>,
    },
    /// What the model said before it asked for tools.
    Thought {
        /// The text.
        content: String,
    },
    /// A tool call, and what became of it.
    ToolCall(Box<ToolCall>),
    /// How a tool ended whose call is not known, because the items begin after it.
    ToolResult(Box<ToolResult>),
    /// What the agent answered.
    AssistantMessage {
        /// The text.
        content: String,
        /// True for the text so far of a cancelled turn.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
        /// Why it ends where it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<FinishReason>,
    },
    /// A plan that the agent made. It stays in its place while its steps go on.
    WorkPlan(WorkPlan),
    /// Something worth a quiet line: a fallback to another model, a compaction, a skill.
    Note {
        /// The type of the event.
        event: NoteEvent,
        /// The event's own fields, as on the wire (`docs/api/events.md`).
        data: Map<String, Value>,
    },
    /// How a turn ended, or the part of a sub-agent.
    End(Box<End>),
}

/// A plan that the agent made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkPlan {
    /// Its id. A later plan with the same id changes this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// Its title.
    pub title: String,
    /// Its steps.
    pub steps: Vec<PlanStep>,
}

/// A step of a work plan. It has nothing to do with an LLM call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// Its number.
    pub step_number: u64,
    /// What is to be done.
    pub description: String,
    /// How it stands.
    pub status: PlanStepStatus,
}

/// How a turn ended, or the part of a sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The type of the event.
    pub outcome: EndKind,
    /// Of an error: its stable code, which has a page in `docs/errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Of an error: a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of a cancel: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// As that of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// LLM calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tokens, with those of all sub-agents, as on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// A decimal number as a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// The value of the answer, when the agent has an output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl End {
    /// Returns true when an LLM call has failed, and the turn or the sub-agent with it.
    pub fn is_llm_error(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.outcome == EndKind::Error && code.starts_with(LLM_ERRORS)
    }
}

/// The events that end a turn, or the part of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// It was answered.
    Complete,
    /// It failed.
    Error,
    /// Somebody cancelled it.
    Cancelled,
}

impl EndKind {
    /// The end that an event of this type is.
    pub(super) fn of(event_type: &str) -> Option<Self> {
        match event_type {
            "complete" => Some(Self::Complete),
            "error" => Some(Self::Error),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// The type of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}
