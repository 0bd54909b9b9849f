//! What a person is shown of a conversation. The fields are those of `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::{Map, Value};

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
        /// `stop`, `length`, `cancelled`, `invalid_output`, `step_limit`, or a word that is newer.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<String>,
    },
    /// A plan that the agent made. It stays in its place while its steps go on.
    WorkPlan(WorkPlan),
    /// Something worth a quiet line: a fallback to another model, a compaction, a skill.
    Note {
        /// The type of the event.
        event: String,
        /// The event's own fields, as on the wire (`docs/api/events.md`).
        data: Map<String, Value>,
    },
    /// How a turn ended, or the part of a sub-agent.
    End(Box<End>),
}

/// A tool call, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool.
    pub tool_name: String,
    /// What the tool runs with: a person may have edited it.
    pub tool_input: Value,
    /// The tool execution. Calls of the first releases have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The hook that called the tool, like `before_turn`; `None` when a model asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Where it stands.
    pub state: CallState,
    /// How it ended.
    #[serde(flatten)]
    pub result: Option<CallResult>,
    /// The approval that it needs, or needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The call is run by a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tool: Option<ClientTool>,
    /// The sub-agent that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<SubAgent>,
}

/// Where a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It has no result yet.
    Running,
    /// It has a result.
    Done,
    /// It has failed.
    Failed,
    /// The tool was cut off, and may or may not have had its effect, which its result says; or the turn ended without a
    /// result.
    Unknown,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// What the tool gave.
    pub tool_output: Value,
    /// True when the tool failed.
    pub is_error: bool,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The place of the event with the result.
    pub result_sequence_number: u64,
    /// When that was, as the timestamp of an item.
    pub result_timestamp: i64,
}

/// The approval that a call needs, or needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// `pending`, then the decision: `approved`, `denied`, `expired`, `cancelled`, or a word that is newer.
    pub state: String,
    /// To be sent back with the answer: it binds the answer to this tool and this input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// Until when somebody may answer (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// It was approved with another input than the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<bool>,
    /// This tool never asks again in this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<bool>,
    /// Why it was decided so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
}

/// A call that a client is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// Until when its result is taken (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An agent that a call gave a task to. Its items have the same `agent_execution_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubAgent {
    /// Its agent execution.
    pub agent_execution_id: String,
    /// Its name.
    pub agent: String,
    /// What it is to do.
    pub task: String,
    /// 1: under the turn's own agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// `running`, then the type of the event that ended it.
    pub state: String,
}

/// How a tool ended whose call is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The tool.
    pub tool_name: String,
    /// What it gave.
    pub tool_output: Value,
    /// True when it failed.
    pub is_error: bool,
    /// True when the tool was cut off, and may or may not have had its effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
    /// The tool execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
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
    /// `pending`, `running`, `completed`, `failed`, or a word that is newer.
    pub status: String,
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
    pub finish: Option<String>,
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
