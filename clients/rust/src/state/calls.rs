//! Tool calls, and what belongs to them: results, approvals, clients and sub-agents. The fields are those of
//! `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::Value;

use super::items::EndKind;
use crate::words::ApprovalState;

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

impl ToolCall {
    /// Returns true when the call needs an approval that nobody has answered. After the end of the call, nobody can.
    pub fn has_pending_approval(&self) -> bool {
        let approval = self.approval.as_ref();
        approval.is_some_and(|approval| approval.state == ApprovalState::Pending)
    }

    /// Returns true while the call waits for a person, or for the client that is to run it.
    pub fn is_waiting(&self) -> bool {
        let waits = self.has_pending_approval() || self.client_tool.is_some();
        self.state == CallState::Running && waits
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Pending, then the decision.
    pub state: ApprovalState,
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

impl Approval {
    /// Makes an approval of which nothing but its state is known.
    pub(super) fn in_state(state: ApprovalState) -> Self {
        Self {
            state,
            input_hash: None,
            expires_at: None,
            edited: None,
            remember: None,
            reason: None,
            resolved_by: None,
        }
    }
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
    /// How it stands.
    pub state: SubAgentState,
}

/// How a sub-agent stands: it runs, or it has the type of the event that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubAgentState {
    /// It is at work, or waits for somebody.
    Running,
    /// It has answered.
    Complete,
    /// It failed.
    Error,
    /// Somebody cancelled it.
    Cancelled,
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
