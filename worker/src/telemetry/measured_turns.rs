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
    AgentEnd, BegunTurn, CompletedStep, Saved, StepClaim, ToolClaim, ToolKey, ToolRecord, TraceKey,
    TurnObserver,
};
use everturn_telemetry::{
    names::OTHER,
    turns::{self, Agent},
};
use lru::LruCache;

/// The most agent executions that are known at once, which is more than a worker runs. Beyond the limit, the oldest
/// turn's time is not recorded.
const KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Records the metrics of turns.
pub(super) struct MeasuredTurns {
    /// Agent executions at work in this process, by id.
    known: Mutex<LruCache<String, Known>>,
}

/// An agent execution.
struct Known {
    agent: String,
    /// The start time of a turn that began in this process.
    begun: Option<Instant>,
}

impl MeasuredTurns {
    pub(super) fn new() -> Self {
        Self {
            known: Mutex::new(LruCache::new(KNOWN)),
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
        let begun = self.known().pop(id).and_then(|known| known.begun);
        let took = begun.map(|begun| begun.elapsed());
        let code = ended.error_code.as_deref().unwrap_or_default();
        turns::ended(&ended.agent, agent, ended.status.as_str(), code, took);
    }

    /// Notes the agent of an agent execution, unless the agent is known.
    fn note_agent(&self, id: &str, agent: &str) {
        self.known().get_or_insert(id.to_owned(), || Known {
            agent: agent.to_owned(),
            begun: None,
        });
    }

    fn known(&self) -> MutexGuard<'_, LruCache<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
        Some(Batch::Question(_)) => "question",
        Some(Batch::Approval(_)) => "approval",
        Some(Batch::SubAgent(_)) => "sub_agent",
        Some(Batch::End(_)) => "end",
        None => "none",
    }
}

#[async_trait]
impl TurnObserver for MeasuredTurns {
    async fn turn_begun(&self, key: &TraceKey, begun: &BegunTurn) {
        let Some(agent) = &begun.agent else { return };
        let agent = &agent.definition.name;
        if begun.is_new {
            turns::begun(agent);
            let known = Known {
                agent: agent.clone(),
                begun: Some(Instant::now()),
            };
            self.known().put(key.agent_execution_id.clone(), known);
        } else {
            self.note_agent(&key.agent_execution_id, agent);
        }
    }

    async fn sub_agent_begun(&self, key: &TraceKey, begun: &BegunTurn) {
        if let Some(agent) = &begun.agent {
            self.note_agent(&key.agent_execution_id, &agent.definition.name);
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

    fn tool_claimed(&self, key: &ToolKey, claim: &ToolClaim) {
        if let ToolClaim::Run { caller, .. } = claim {
            self.note_agent(&key.agent_execution_id, &caller.agent);
        }
    }

    fn tool_ended(&self, key: &ToolKey, record: &ToolRecord) {
        let Some(end) = &record.end else { return };
        // A remote tool may end at a worker that has not seen the claim.
        let agent = self
            .known()
            .get(&key.agent_execution_id)
            .map_or_else(|| OTHER.to_owned(), |known| known.agent.clone());
        let call = &record.call;
        let took = Duration::from_millis(u64::from(end.duration_ms));
        let status = record.status.as_str();
        turns::tool_ended(&agent, &call.tool_name, &call.effect, status, took);
    }

    async fn saved(&self, request: &SaveRequest, saved: &Saved, took: Duration) {
        turns::saved(name_of(request), took);
        if let Some(ended) = &saved.ended {
            self.note_end(request, ended);
        }
    }
}
