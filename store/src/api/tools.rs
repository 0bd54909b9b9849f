//! Tool executions: their keys, claims, records and ends.

use async_trait::async_trait;
use everturn_proto::{
    Json, LogId,
    turn::{AskedQuestion, ToolCall},
    words::{ApprovalState, EventType, ToolStatus},
};
use prost::Message;

use super::{Result, steps::StepKey};

/// Claims tool executions, and records their ends. A claim prevents a second run of a tool (invariant 6, done once).
/// For workers: `tool_execution_activity`, `claim_remote_tool_activity` and `record_remote_tool_activity`.
#[async_trait]
pub trait ToolClaims: Send + Sync {
    /// Claims a tool execution before its run, and writes the checkpoint `tool_start` if the tool may run (invariant 6,
    /// done once). `claimant` names the attempt ([`WorkerId::claimant`], or the run of a remote tool). The name is not
    /// empty, and no other attempt ever uses the name. After a lost response (a connection broke at the commit), the
    /// claimant asks again and may run the tool.
    ///
    /// [`WorkerId::claimant`]: super::WorkerId::claimant
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim>;

    /// Gives back the claim of a tool that the claimant did not run. The tool becomes pending again, without a trace of
    /// the claim. Another claimant's claim and an ended tool stay unchanged.
    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()>;

    /// Records the end of a tool execution with the checkpoint `tool_complete`, and returns the stored record: the first
    /// end wins.
    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord>;
}

/// One tool execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolKey {
    /// The conversation.
    pub conversation_id: String,
    /// The first message of the turn.
    pub message_id: String,
    /// The agent execution of the tool call.
    pub agent_execution_id: String,
    /// The step of the tool call.
    pub step: u32,
    /// The tool execution.
    pub execution_id: String,
    /// The epoch of the requesting run (invariant 11, one run); `None`: no run asks, but the store itself or
    /// a hook after a turn.
    pub epoch: Option<u32>,
}

impl ToolKey {
    /// Returns the step of the tool call.
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

/// The result of claiming a tool execution.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolClaim {
    /// The claimant must run the tool.
    Run {
        /// The record after the claim.
        record: ToolRecord,
        /// The caller of the tool.
        caller: ToolCaller,
    },
    /// The tool execution has ended already. The record has the end.
    Ended(ToolRecord),
    /// The tool has asked a person, and the question waits for its answer. The record has the question.
    Asks(ToolRecord),
    /// An earlier attempt began without a recorded end, and the tool must not run twice.
    OutcomeUnknown {
        /// The record of the attempt.
        record: ToolRecord,
        /// The caller of the tool.
        caller: ToolCaller,
    },
}

/// The caller of a tool, from the store. No field comes from a model, from a message or from the requesting run.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ToolCaller {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The owner of the conversation, if any.
    pub owner_id: Option<String>,
    /// The name of the calling agent.
    pub agent: String,
    /// The hash of the calling agent's definition.
    pub agent_hash: String,
    /// The depth of the agent execution: 0 for the turn's own agent, 1 for a sub-agent, and so on.
    #[sqlx(try_from = "i64")]
    pub depth: u32,
    /// The log of the conversation, for the readers of the tool's progress.
    #[sqlx(try_from = "String")]
    pub log_id: LogId,
}

/// The end of a tool execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    /// The final status.
    pub status: ToolStatus,
    /// The result for the model and the readers.
    pub result: Json,
    /// The whole result of a cut `result`: a JSON string of the exact text.
    pub full_result: Option<Json>,
    /// True if `result` describes an error.
    pub is_error: bool,
    /// The duration by the clock, for the observe event.
    pub duration_ms: u32,
    /// The tool's own events, saved before its observe event: (type, data).
    pub events: Vec<(EventType, Json)>,
}

/// A row of `tool_execution_records`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRecord {
    /// The model's call, with the approved input.
    pub call: ToolCall,
    /// The status of the tool execution.
    pub status: ToolStatus,
    /// The number of allowed attempts, the present attempt included.
    pub attempt: u32,
    /// The end of an ended tool execution.
    pub end: Option<ToolEnd>,
    /// The state of the approval.
    pub approval: ApprovalState,
    /// The last question of the tool to a person, with the answer if given; `None` after the end.
    pub question: Option<AskedQuestion>,
}

impl ToolRecord {
    /// Makes the record of a requested call before its start.
    pub fn pending(call: ToolCall) -> Self {
        Self {
            call,
            status: ToolStatus::Pending,
            attempt: 0,
            end: None,
            approval: ApprovalState::NotNeeded,
            question: None,
        }
    }

    /// Returns the open question.
    pub fn open_question(&self) -> Option<&AskedQuestion> {
        let is_open = self.approval == ApprovalState::Pending;
        self.question.as_ref().filter(|_| is_open)
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let ends = self.end.iter().map(|end| {
            let events = end.events.iter().map(|(_, data)| data.as_str().len());
            end.result.as_str().len() + events.sum::<usize>()
        });
        let question = self.question.as_ref().map_or(0, Message::encoded_len);
        self.call.encoded_len() + question + ends.sum::<usize>()
    }
}

/// A tool, with the definition approved by a person or used by a conversation.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DefinedTool {
    /// The name.
    pub tool_name: String,
    /// The hash of the definition; empty if unknown.
    pub definition_hash: String,
}

/// The result of a tool call for the model.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolResult {
    /// Our id of the tool execution.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The result.
    pub result: Json,
    /// True if the result describes an error.
    pub is_error: bool,
}
