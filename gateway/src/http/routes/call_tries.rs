//! The tries of an LLM call that gave no answer, each with its reason.

use std::collections::BTreeMap;

use everturn_store::PastTry;
use serde::Serialize;
use utoipa::ToSchema;

use super::{stored_results::milliseconds, wire::time};

/// The most tries of a page: 100 calls with 50 kept tries each, the most that `kept_tries` allows.
pub(super) const MAX_TRIES: u32 = 5000;

/// Tries of an LLM call without an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = CallTries)]
pub(super) struct TriesBody {
    /// Newest tries without an answer, oldest first. A lost worker leaves no entry, and the number `generation` of the lost
    /// try is missing.
    failed: Vec<TryBody>,
    /// Number of older tries without an answer. Their reasons are not kept: a step keeps the newest `kept_tries` of
    /// `[worker]`.
    older: u32,
}

impl From<Vec<PastTry>> for TriesBody {
    fn from(tries: Vec<PastTry>) -> Self {
        let first = tries.first().map_or(0, |first| first.number);
        Self {
            older: first.saturating_sub(1),
            failed: tries.into_iter().map(TryBody::from).collect(),
        }
    }
}

/// A try of an LLM call that gave no answer.
#[derive(Serialize, ToSchema)]
#[schema(as = CallTry)]
struct TryBody {
    /// Number of the try, counted from 1 over the agent execution's LLM calls.
    generation: u32,
    /// Called model, as `provider/model`.
    #[schema(example = "openai/gpt-5-mini")]
    model: String,
    /// Id of the worker. The worker's identity in Temporal ends with the id.
    worker_id: String,
    /// Code of the failure; `cancelled` when the turn was cancelled.
    #[schema(example = "llm_overloaded")]
    code: String,
    /// The reason in a sentence, at most 500 bytes.
    reason: String,
    /// True when no further try follows.
    is_final: bool,
    /// Milliseconds until the next try, if the provider or Everturn named the pause; null when Temporal decides.
    #[schema(required = true)]
    retry_after_ms: Option<u32>,
    started_at: String,
    ended_at: String,
    duration_ms: u32,
}

impl From<PastTry> for TryBody {
    fn from(tried: PastTry) -> Self {
        Self {
            generation: tried.generation,
            model: tried.model,
            worker_id: tried.worker_id,
            code: tried.code,
            reason: tried.reason,
            is_final: tried.is_final,
            retry_after_ms: tried.retry_after_ms,
            duration_ms: milliseconds(tried.started_at, tried.ended_at),
            started_at: time(tried.started_at),
            ended_at: time(tried.ended_at),
        }
    }
}

/// A step whose LLM call has no answer.
#[derive(Serialize, ToSchema)]
#[schema(as = UnansweredCall)]
pub(super) struct UnansweredBody {
    /// The number of the step, from 0.
    pub(super) step: u32,
    pub(super) tries: TriesBody,
}

/// Groups tries by their steps.
pub(super) fn by_step(tries: Vec<PastTry>) -> BTreeMap<u32, Vec<PastTry>> {
    let mut steps: BTreeMap<u32, Vec<PastTry>> = BTreeMap::new();
    for tried in tries {
        steps.entry(tried.step).or_default().push(tried);
    }
    steps
}
