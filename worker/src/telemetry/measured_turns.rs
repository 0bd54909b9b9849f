//! Wraps the store of turns, and records metrics of its calls.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use everturn_proto::{
    Thread,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, ToolCall, save_request::Batch},
};
use everturn_store::{
    Access, AgentEnd, BackgroundResponse, BeginTurn, BegunTurn, CompletedStep, DefinedTool,
    Estimate, FailedCall, ModelContext, NotedFailure, OnUnknownAgent, PageLimit, ReadBefore,
    Reservation, Saved, StepClaim, StepKey, StoreError, ToolClaim, ToolEnd, ToolKey, ToolRecord,
    TurnStart, TurnStore, WorkerId,
};
use everturn_telemetry::turns::{self, Agent};
use lru::LruCache;

use super::noted::noted;

/// The most turns that are timed in parallel, which is more than a worker runs. Beyond the limit, the oldest turn's
/// time is not recorded.
const TIMED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A store of turns that records metrics.
pub(super) struct MeasuredTurns {
    store: Arc<dyn TurnStore>,
    /// The start times of turns that began in this process, by agent execution id.
    begun: Mutex<LruCache<String, Instant>>,
}

impl MeasuredTurns {
    pub(super) fn new(store: Arc<dyn TurnStore>) -> Self {
        Self {
            store,
            begun: Mutex::new(LruCache::new(TIMED)),
        }
    }

    fn note_begun(&self, agent_execution_id: String) {
        turns::begun();
        self.timed().put(agent_execution_id, Instant::now());
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

/// Counts the end of a tool execution. The end counts again after a lost response, because the next attempt stores the
/// end again.
fn note_tool(record: &ToolRecord) {
    if let Some(end) = &record.end {
        let took = Duration::from_millis(u64::from(end.duration_ms));
        turns::tool_ended(&record.call.effect, record.status.as_str(), took);
    }
}

#[async_trait]
impl TurnStore for MeasuredTurns {
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart, StoreError> {
        let agent_execution_id = begin.agent_execution_id.clone();
        let start = noted(self.store.begin_turn(begin).await)?;
        if let TurnStart::Begun(begun) = &start
            && begun.is_new
        {
            self.note_begun(agent_execution_id);
        }
        Ok(start)
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn, StoreError> {
        noted(self.store.begin_sub_agent(call, agents, on_unknown).await)
    }

    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>, StoreError> {
        noted(self.store.agent_of(conversation_id).await)
    }

    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>, StoreError> {
        noted(self.store.owner_of(conversation_id).await)
    }

    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let texts = self.store.message_texts(conversation_id, message_ids);
        noted(texts.await)
    }

    async fn begin_after_turn(
        &self,
        step: &StepKey,
        calls: &[ToolCall],
    ) -> Result<bool, StoreError> {
        noted(self.store.begin_after_turn(step, calls).await)
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>, StoreError> {
        noted(self.store.agent_definition(hash).await)
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext, StoreError> {
        noted(
            self.store
                .context(conversation_id, thread, limit, read)
                .await,
        )
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>, StoreError> {
        noted(self.store.granted_tools(conversation_id, tool_names).await)
    }

    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>, StoreError> {
        noted(
            self.store
                .used_definitions(conversation_id, tool_names)
                .await,
        )
    }

    async fn claim_step(
        &self,
        step: &StepKey,
        worker: Option<&WorkerId>,
    ) -> Result<StepClaim, StoreError> {
        let claim = noted(self.store.claim_step(step, worker).await)?;
        if matches!(claim, StepClaim::Stored(_)) {
            turns::checkpoint_hit();
        }
        Ok(claim)
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<(), StoreError> {
        noted(self.store.release_step(step, generation).await)
    }

    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation, StoreError> {
        let store = &self.store;
        let reserved = store
            .reserve_call(step, generation, call, other_model)
            .await;
        noted(reserved)
    }

    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<(), StoreError> {
        noted(self.store.release_call(step, generation).await)
    }

    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool, StoreError> {
        noted(self.store.note_response(step, generation, response).await)
    }

    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure, StoreError> {
        let done = self.store.note_failed_call(step, generation, failed).await;
        noted(done)
    }

    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool, StoreError> {
        noted(self.store.holds_claim(step, generation).await)
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<CompletedStep, StoreError> {
        let completed = noted(self.store.complete_step(step, state).await)?;
        if matches!(&completed, CompletedStep::Stored(state) if state.calls() > 0) {
            turns::step_stored();
        }
        Ok(completed)
    }

    async fn save_partial(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<(), StoreError> {
        noted(self.store.save_partial(step, state).await)
    }

    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim, StoreError> {
        noted(self.store.claim_tool(key, claimant).await)
    }

    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<(), StoreError> {
        noted(self.store.release_tool(key, claimant).await)
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord, StoreError> {
        let record = noted(self.store.finish_tool(key, end).await)?;
        note_tool(&record);
        Ok(record)
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved, StoreError> {
        let begun = Instant::now();
        let saved = noted(self.store.save(request).await)?;
        turns::saved(name_of(request), begun.elapsed());
        if let Some(ended) = &saved.ended {
            self.note_end(request, ended);
        }
        Ok(saved)
    }
}
