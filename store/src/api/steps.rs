//! The keys, the claims and the replies of steps.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::{LogId, turn::LlmCompleteState};

use super::{BackgroundResponse, ChainPosition, Result, WorkerId};

/// Claims steps, and stores their replies. A claim prevents a second payment for a model call (invariant 5, paid once).
/// For workers: `llm_thinking_activity`.
#[async_trait]
pub trait StepClaims: Send + Sync {
    /// Claims the LLM call of a step: returns the stored `llm_complete` or a new generation (invariant 5, paid once).
    /// `worker` is the calling process; `None` for a process without a lease.
    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim>;

    /// Gives back a claim without a call. The call does not count. A newer claim of the step stays unchanged, and a
    /// repeated release changes nothing.
    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Returns true while the agent execution runs and `generation` is the newest claim. A model call with a lost claim
    /// costs money and has no use.
    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool>;

    /// Stores `llm_complete` and returns the stored reply: the first reply wins. A tool call's id is unique in its
    /// conversation, therefore the store refuses a reply with a used id.
    ///
    /// # Errors
    ///
    /// `RunReplaced` for the reply of an older run, `Superseded` after a newer claim, and `Conflict` after the end of the
    /// agent execution: a worker that was stopped in its call must not answer a step that has changed since.
    async fn complete_step(&self, step: &StepKey, state: LlmCompleteState)
    -> Result<CompletedStep>;
}

/// A step of an agent execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The conversation.
    pub conversation_id: String,
    /// The first message of the turn.
    pub message_id: String,
    /// The agent execution.
    pub agent_execution_id: String,
    /// The number of the step in its agent execution, from 0.
    pub step: u32,
    /// The epoch of the requesting run (invariant 11, one run); `None`: no run asks, but the store itself or
    /// a hook after a turn.
    pub epoch: Option<u32>,
}

/// The result of claiming a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepClaim {
    /// The call was made and paid earlier.
    Stored(LlmCompleteState),
    /// The worker must make the call.
    Call(ClaimedCall),
    /// The worker must not make the call, because the turn's message was cancelled. The text is the reason.
    Cancelled(String),
}

/// A model call claimed by a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedCall {
    /// The log of the step's events. The worker publishes deltas for the log's readers.
    pub log_id: LogId,
    /// The conversation's tenant.
    pub tenant_id: String,
    /// The conversation's owner, if any.
    pub owner_id: Option<String>,
    /// The conversation's metadata.
    pub metadata: BTreeMap<String, String>,
    /// The generation of the call's deltas, larger than any earlier generation of the agent execution.
    pub generation: u32,
    /// The number of the step's calls, the claimed call included. Calls of workers of the release before are not
    /// counted.
    pub calls: u32,
    /// True if the store lacks a part of the saved earlier steps, because the database went back to an earlier point.
    /// The model call would miss the lost part.
    pub is_ahead: bool,
    /// True if the turn has a budget. The call must reserve a part (`reserve_call`).
    pub has_budget: bool,
    /// The provider's background response of an earlier call of the step, if known (`note_response`). The response may
    /// have ended or expired.
    pub background: Option<BackgroundResponse>,
    /// The step's position in the chain of the agent's models, after a failed call (`note_failed_call`).
    pub chain: Option<ChainPosition>,
}

/// The result of storing a step's reply.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once in a call of a model, and nearly always holds a reply"
)]
pub enum CompletedStep {
    /// The stored reply, from this call or an earlier call.
    Stored(LlmCompleteState),
    /// The store refused the reply. The conversation has these call ids of the reply already.
    CallIdsUsed(Vec<String>),
}
