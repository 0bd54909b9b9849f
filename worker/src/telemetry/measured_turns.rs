//! Records metrics of the outcomes of the store's calls for turns.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use everturn_proto::{
    Thread,
    turn::{SaveRequest, save_request::Batch},
};
use everturn_store::{
    AgentEnd, BegunTurn, CompletedStep, Saved, StepClaim, ToolRecord, TraceKey, TurnObserver,
};
use everturn_telemetry::turns::{self, Agent};
use lru::LruCache;

/// The most turns that are timed in parallel, which is more than a worker runs. Beyond the limit, the oldest turn's
/// time is not recorded.
const TIMED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Records the metrics of turns.
pub(super) struct MeasuredTurns {
    /// The start times of turns that began in this process, by agent execution id.
    begun: Mutex<LruCache<String, Instant>>,
}

impl MeasuredTurns {
    pub(super) fn new() -> Self {
        Self {
            begun: Mutex::new(LruCache::new(TIMED)),
        }
    }

    fn note_end(&self, request: &SaveRequest, ended: &AgentEnd) {
        let id = &request.agent_execution_id;
        let thread = Thread::of(&request.conversation_id, &request.message_id, id);
        let agent = if thread.is_sub_agents() {
            Agent::Sub
        } else {
            Agent::OfTurn
        };
        let took = self.timed().pop(id).map(|begun| begun.elapsed());
        let code = ended.error_code.as_deref().unwrap_or_default();
        turns::ended(agent, ended.status.as_str(), code, took);
    }

    fn timed(&self) -> MutexGuard<'_, LruCache<String, Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of a batch in metrics.
fn name_of(request: &SaveRequest) -> &'static str {
    match &request.batch {
        Some(Batch::Steer(_)) => "steer",
        Some(Batch::Thought(_)) => "thought",
        Some(Batch::CutReply(_)) => "cut_reply",
        Some(Batch::Compaction(_)) => "compaction",
        Some(Batch::Observe(_)) => "observe",
        Some(Batch::Approval(_)) => "approval",
        Some(Batch::SubAgent(_)) => "sub_agent",
        Some(Batch::End(_)) => "end",
        None => "none",
    }
}

#[async_trait]
impl TurnObserver for MeasuredTurns {
    async fn turn_begun(&self, key: &TraceKey, begun: &BegunTurn) {
        if begun.is_new {
            turns::begun();
            self.timed()
                .put(key.agent_execution_id.clone(), Instant::now());
        }
    }

    fn step_claimed(&self, claim: &StepClaim) {
        if matches!(claim, StepClaim::Stored(_)) {
            turns::checkpoint_hit();
        }
    }

    fn step_completed(&self, completed: &CompletedStep) {
        if matches!(completed, CompletedStep::Stored(state) if state.calls() > 0) {
            turns::step_stored();
        }
    }

    fn tool_ended(&self, record: &ToolRecord) {
        if let Some(end) = &record.end {
            let took = Duration::from_millis(u64::from(end.duration_ms));
            turns::tool_ended(&record.call.effect, record.status.as_str(), took);
        }
    }

    async fn saved(&self, request: &SaveRequest, saved: &Saved, took: Duration) {
        turns::saved(name_of(request), took);
        if let Some(ended) = &saved.ended {
            self.note_end(request, ended);
        }
    }
}
