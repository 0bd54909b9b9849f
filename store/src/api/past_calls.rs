//! Past LLM calls: the facts of each call, and the content that a call was sent and answered.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState, SentContext},
    words::FinishReason,
};
use sqlx::FromRow;

use super::{Access, ContextMessage, Result, Spent, WorkerId};
use crate::columns::{MaybeMilliseconds, MaybeNumber};

/// Reads past LLM calls. For gateways.
#[async_trait]
pub trait PastCalls: Send + Sync {
    /// Returns the LLM calls of an agent execution with stored replies, in the order of their steps: at most `limit`
    /// calls after the step `after`.
    async fn past_calls(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        after: Option<u32>,
        limit: u32,
    ) -> Result<Vec<PastCall>>;

    /// Returns the kept tries without a reply of an agent execution's steps, in their order, at most `limit` tries.
    async fn failed_tries(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        steps: TriesOf,
        limit: u32,
    ) -> Result<Vec<PastTry>>;

    /// Returns the LLM call of a step with its content; `None` without a stored reply. The call reads at most the
    /// messages that a context may have (`limits::MAX_CONTEXT_MESSAGES` and `limits::MAX_CONTEXT_BYTES`).
    async fn past_call(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        step: u32,
    ) -> Result<Option<PastCallContent>>;
}

/// A try of an LLM call without a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedTry {
    /// The generation of the claim.
    pub generation: u32,
    /// The called model, as `provider/model`.
    pub model: String,
    /// The worker that made the try.
    pub worker: WorkerId,
    /// The code of the failure.
    pub code: String,
    /// The reason, in a sentence.
    pub reason: String,
    /// True if no further try follows.
    pub is_final: bool,
    /// The pause before the next try; `None` if the engine decides.
    pub retry_after: Option<Duration>,
    /// The time of the claim.
    pub started_at: DateTime<Utc>,
    /// The number of tries that the step keeps.
    pub keep: u32,
}

/// A kept try of an LLM call without a reply.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct PastTry {
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The number of the step's noted tries until this try, from 1. The store keeps only the newest tries of a step.
    #[sqlx(try_from = "i64")]
    pub number: u32,
    /// The generation of the claim.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// The called model, as `provider/model`.
    pub model: String,
    /// The worker that made the try.
    pub worker_id: String,
    /// The code of the failure.
    pub code: String,
    /// The reason, in a sentence.
    pub reason: String,
    /// True if no further try follows.
    pub is_final: bool,
    /// The pause before the next try in milliseconds; `None` if the engine decides.
    #[sqlx(try_from = "MaybeNumber")]
    pub retry_after_ms: Option<u32>,
    /// The time of the claim.
    pub started_at: DateTime<Utc>,
    /// The time of the failure.
    pub ended_at: DateTime<Utc>,
}

/// The steps whose tries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriesOf {
    /// The last step of the page before.
    pub after: Option<u32>,
    /// The last step; `None`: every further step.
    pub through: Option<u32>,
}

/// The messages of a past call.
#[derive(Debug, Clone, PartialEq)]
pub struct PastInput {
    /// The messages, oldest first.
    pub messages: Vec<ContextMessage>,
    /// True if the messages have the numbers that the call noted: messages and characters.
    pub is_exact: bool,
}

/// A past LLM call, without its content.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct PastCall {
    /// The step, from 0.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The generation of the try with the stored reply, from 1.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    /// The provider that answered.
    pub provider: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The end of the reply.
    #[sqlx(try_from = "String")]
    pub finish: FinishReason,
    /// The usage and cost.
    #[sqlx(flatten)]
    pub spent: Spent,
    /// The sizes of the call's context; `None` if no model was called, because a compaction left messages out without
    /// a summary.
    #[sqlx(json(nullable))]
    pub sent: Option<SentContext>,
    /// The time at which the worker claimed the try with the stored reply.
    #[sqlx(rename = "started_ms", try_from = "MaybeMilliseconds")]
    pub started_at: Option<DateTime<Utc>>,
    /// The time at which the reply was stored.
    pub stored_at: DateTime<Utc>,
}

/// A past LLM call with its content.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCallContent {
    /// The reply.
    pub state: LlmCompleteState,
    /// The definition of the agent.
    pub agent: AgentDefinition,
    /// The messages of the call; `None` if no model was called.
    pub input: Option<PastInput>,
    /// The time at which the reply was stored.
    pub stored_at: DateTime<Utc>,
}
