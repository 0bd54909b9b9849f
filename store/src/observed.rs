//! A [`TurnStore`] that tells observers about the outcomes of its calls, for metrics and traces.
//!
//! Must not be here: names of metrics and spans. Observers know them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use everturn_proto::{
    Thread, ids,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, ToolCall},
};

use crate::{
    api::{
        Access, BackgroundResponse, BeginTurn, BegunTurn, CompletedStep, DefinedTool, Estimate,
        FailedCall, ModelContext, NotedFailure, OnUnknownAgent, PageLimit, ReadBefore, Reservation,
        Result, Saved, StepClaim, StepKey, ToolClaim, ToolEnd, ToolKey, ToolRecord, TraceKey,
        TurnStart, TurnStore, WorkerId,
    },
    error::StoreError,
};

/// Learns the outcomes of a store's calls. The answer of a call waits for its observers, so an observer must be fast
/// and must not fail.
#[async_trait]
pub trait TurnObserver: Send + Sync {
    /// A turn has begun, or this worker has learned that it had begun before (`begun.is_new` is false).
    async fn turn_begun(&self, _: &TraceKey, _: &BegunTurn) {}

    /// A sub-agent has begun, now or before.
    async fn sub_agent_begun(&self, _: &TraceKey, _: &BegunTurn) {}

    /// A step was claimed.
    fn step_claimed(&self, _: &StepClaim) {}

    /// The reply of a step was stored, now or before.
    fn step_completed(&self, _: &CompletedStep) {}

    /// A tool execution was claimed.
    fn tool_claimed(&self, _: &ToolClaim) {}

    /// A tool execution has ended. An attempt after a lost answer tells the end once more.
    fn tool_ended(&self, _: &ToolRecord) {}

    /// A batch was saved, and the save took this time.
    async fn saved(&self, _: &SaveRequest, _: &Saved, _: Duration) {}

    /// A call has failed.
    fn failed(&self, _: &StoreError) {}
}

/// A store with observers, told in this order.
pub struct ObservedTurns {
    store: Arc<dyn TurnStore>,
    observers: Vec<Arc<dyn TurnObserver>>,
}

impl ObservedTurns {
    /// Observes the calls of `store`.
    pub fn new(store: Arc<dyn TurnStore>, observers: Vec<Arc<dyn TurnObserver>>) -> Self {
        Self { store, observers }
    }

    /// Tells the observers about a failed call.
    fn seen<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer {
            self.each(|observer| observer.failed(error));
        }
        answer
    }

    fn each(&self, tell: impl Fn(&dyn TurnObserver)) {
        for observer in &self.observers {
            tell(&**observer);
        }
    }
}

#[async_trait]
impl TurnStore for ObservedTurns {
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart> {
        let key = TraceKey::of(&begin.conversation_id, &begin.agent_execution_id);
        let start = self.seen(self.store.begin_turn(begin).await)?;
        if let TurnStart::Begun(begun) = &start {
            for observer in &self.observers {
                observer.turn_begun(&key, begun).await;
            }
        }
        Ok(start)
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn> {
        let begun = self.store.begin_sub_agent(call, agents, on_unknown).await;
        let begun = self.seen(begun)?;
        let (conversation_id, call_id) = (&call.conversation_id, &call.execution_id);
        let sub_agent = ids::sub_agent_execution_id(conversation_id, call_id);
        let key = TraceKey::of(conversation_id, &sub_agent);
        for observer in &self.observers {
            observer.sub_agent_begun(&key, &begun).await;
        }
        Ok(begun)
    }

    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>> {
        self.seen(self.store.agent_of(conversation_id).await)
    }

    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>> {
        self.seen(self.store.owner_of(conversation_id).await)
    }

    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>> {
        let texts = self.store.message_texts(conversation_id, message_ids);
        self.seen(texts.await)
    }

    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool> {
        self.seen(self.store.begin_after_turn(step, calls).await)
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>> {
        self.seen(self.store.agent_definition(hash).await)
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext> {
        let context = self.store.context(conversation_id, thread, limit, read);
        self.seen(context.await)
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        self.seen(self.store.granted_tools(conversation_id, tool_names).await)
    }

    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        let used = self.store.used_definitions(conversation_id, tool_names);
        self.seen(used.await)
    }

    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim> {
        let claim = self.seen(self.store.claim_step(step, worker).await)?;
        self.each(|observer| observer.step_claimed(&claim));
        Ok(claim)
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()> {
        self.seen(self.store.release_step(step, generation).await)
    }

    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation> {
        let store = &self.store;
        let reserved = store.reserve_call(step, generation, call, other_model);
        self.seen(reserved.await)
    }

    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()> {
        self.seen(self.store.release_call(step, generation).await)
    }

    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool> {
        let noted = self.store.note_response(step, generation, response);
        self.seen(noted.await)
    }

    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure> {
        let noted = self.store.note_failed_call(step, generation, failed);
        self.seen(noted.await)
    }

    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool> {
        self.seen(self.store.holds_claim(step, generation).await)
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<CompletedStep> {
        let completed = self.seen(self.store.complete_step(step, state).await)?;
        self.each(|observer| observer.step_completed(&completed));
        Ok(completed)
    }

    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()> {
        self.seen(self.store.save_partial(step, state).await)
    }

    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim> {
        let claim = self.seen(self.store.claim_tool(key, claimant).await)?;
        self.each(|observer| observer.tool_claimed(&claim));
        Ok(claim)
    }

    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()> {
        self.seen(self.store.release_tool(key, claimant).await)
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord> {
        let record = self.seen(self.store.finish_tool(key, end).await)?;
        self.each(|observer| observer.tool_ended(&record));
        Ok(record)
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        let begun = Instant::now();
        let saved = self.seen(self.store.save(request).await)?;
        let took = begun.elapsed();
        for observer in &self.observers {
            observer.saved(request, &saved, took).await;
        }
        Ok(saved)
    }
}
