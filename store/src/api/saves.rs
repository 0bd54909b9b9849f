//! Saves of batches of events. Reading the events is in `events`.

use async_trait::async_trait;
use everturn_proto::{
    LogId, SealedStep,
    turn::{SaveRequest, SaveResult},
    words::AgentExecutionStatus,
};

use super::Result;

/// Writes the event log. For workers: `save_event_activity`, and the activities that have stored the end of a tool.
#[async_trait]
pub trait EventWriter: Send + Sync {
    /// Saves one batch in one transaction (invariants 2, one order, and 3, idempotent saves). A batch with a stored key
    /// changes no row, and neither does a batch after the agent execution's end. In both cases, the call returns the
    /// stored result.
    async fn save(&self, request: &SaveRequest) -> Result<Saved>;
}

/// The result of a save.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The conversation's log.
    pub log_id: LogId,
    /// The stored result.
    pub result: SaveResult,
    /// Steps with texts that the batch's events replace for every reader.
    pub sealed: Vec<SealedStep>,
    /// The end of the agent execution, if this save has ended the agent execution.
    pub ended: Option<AgentEnd>,
}

/// Hooks after a turn that wait for their workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingHooks {
    /// The task queue of the workers that run the hooks; `None` for the queue of the workflows.
    pub tool_queue: Option<String>,
}

/// The end and the usage of an agent execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    /// The agent's name.
    pub agent: String,
    /// The final status.
    pub status: AgentExecutionStatus,
    /// The code of the error event, if any.
    pub error_code: Option<String>,
    /// The beginning of the message of the error event, at most [`AgentEnd::MAX_MESSAGE_BYTES`].
    pub error_message: Option<String>,
    /// The number of LLM calls with stored replies.
    pub calls: u32,
    /// Input tokens of the calls.
    pub input_tokens: u32,
    /// Output tokens of the calls.
    pub output_tokens: u32,
}

impl AgentEnd {
    /// The most bytes of the message of an error beside the code. The event has the whole message.
    pub const MAX_MESSAGE_BYTES: usize = 1024;
}
