//! Tool calls with their results, approvals, clients and sub-agents. The fields are those of
//! `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::Value;

use crate::words::ApprovalState;

/// A tool call and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool's name.
    pub tool_name: String,
    /// The title for people, like `Search the web for cats`; `None`: show the tool's name. A title changes with an edited
    /// input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The input that the tool runs with, perhaps edited by a person.
    pub tool_input: Value,
    /// The tool execution. Calls of the first releases have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The hook that called the tool, like `before_turn`; `None` for a model's call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The state of the call.
    pub state: CallState,
    /// The call's result, if ended.
    #[serde(flatten)]
    pub result: Option<CallResult>,
    /// The approval that the call needs or needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Set when a client runs the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tool: Option<ClientTool>,
    /// The sub-agent that the call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<SubAgent>,
}

impl ToolCall {
    /// Returns true when the call needs an approval and has no answer yet. After the end of the call, no answer is
    /// possible.
    pub fn has_pending_approval(&self) -> bool {
        let approval = self.approval.as_ref();
        approval.is_some_and(|approval| approval.state == ApprovalState::Pending)
    }

    /// Returns true while the call waits for a person or for a client that runs the tool.
    pub fn is_waiting(&self) -> bool {
        let waits = self.has_pending_approval() || self.client_tool.is_some();
        self.state == CallState::Running && waits
    }
}

/// The state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The call has no result yet.
    Running,
    /// The call has a result.
    Done,
    /// The call has failed.
    Failed,
    /// The tool was cut off and may have had its effect, as its result tells; or the turn ended without a result.
    Unknown,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The tool's output.
    pub tool_output: Value,
    /// True when the tool failed.
    pub is_error: bool,
    /// How long the tool ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The sequence number of the event with the result.
    pub result_sequence_number: u64,
    /// The time of the result, in the format of an item's timestamp.
    pub result_timestamp: i64,
}

/// The approval that a call needs or needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Pending, then the decision.
    pub state: ApprovalState,
    /// The hash to send with the answer. The hash binds the answer to the tool and its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// Deadline for an answer (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The input as the store keeps it, character for character. Show people the text, because `tool_input` may have rounded
    /// numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    /// `other`: another person than the one who asked must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_by: Option<String>,
    /// True when the person approved an edited input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<bool>,
    /// True when the tool needs no more approvals in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<bool>,
    /// The reason for the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// The question of the running tool; `None` for an approval before the tool runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The person's answer to the form of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// A question of a running tool to a person, who fills in a form or opens an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The words of the tool's server.
    pub message: String,
    /// The form: the JSON Schema of an object with flat properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The address to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Approval {
    /// Makes an approval of which only the state is known.
    pub(super) fn in_state(state: ApprovalState) -> Self {
        Self {
            state,
            input_hash: None,
            expires_at: None,
            input_text: None,
            approval_by: None,
            edited: None,
            remember: None,
            reason: None,
            resolved_by: None,
            question: None,
            answer: None,
        }
    }
}

/// A call for a client to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// Deadline for the result (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An agent that works on a call's task. The sub-agent's items have the same `agent_execution_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubAgent {
    /// The sub-agent's agent execution.
    pub agent_execution_id: String,
    /// The sub-agent's name.
    pub agent: String,
    /// The sub-agent's task.
    pub task: String,
    /// Depth in the tree of agents; 1 is directly under the turn's own agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The sub-agent's state.
    pub state: SubAgentState,
}

/// The state of a sub-agent: running, or the type of the event that ended the sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubAgentState {
    /// The sub-agent is working or waiting.
    Running,
    /// The sub-agent has answered.
    Complete,
    /// The sub-agent failed.
    Error,
    /// The sub-agent was cancelled.
    Cancelled,
}

/// The end of a tool whose call is unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The tool's name.
    pub tool_name: String,
    /// The tool's output.
    pub tool_output: Value,
    /// True when the tool failed.
    pub is_error: bool,
    /// True when the tool was cut off, and may have had its effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
    /// The tool execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// How long the tool ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
