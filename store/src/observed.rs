//! The traits of workers with observers, which learn the outcomes of calls, for metrics and traces.
//!
//! Must not be here: names of metrics and spans. Observers know them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use everturn_proto::{
    ids,
    turn::{AgentDefinition, Inbox, LlmCompleteState, ReadInboxRequest, SaveRequest, ToolCall},
};

use crate::api::{
    BeginTurn, BegunTurn, CompletedStep, EventWriter, OnUnknownAgent, Result, Saved, StepClaim,
    StepClaims, StepKey, ToolClaim, ToolClaims, ToolEnd, ToolKey, ToolRecord, TraceKey, TurnStart,
    Turns, WorkerId,
};

/// Learns the outcomes of a store's successful calls. The answer of a call waits for its observers, so an observer must
/// be fast and must not fail.
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
    fn tool_claimed(&self, _: &ToolKey, _: &ToolClaim) {}

    /// A tool execution has ended. An attempt after a lost answer tells the end once more.
    fn tool_ended(&self, _: &ToolKey, _: &ToolRecord) {}

    /// A batch was saved, and the save took this time.
    async fn saved(&self, _: &SaveRequest, _: &Saved, _: Duration) {}
}

/// Observers, told in this order.
pub type Observers = Arc<[Arc<dyn TurnObserver>]>;

/// A store with observers. `S` is the observed trait.
pub struct Observed<S: ?Sized> {
    store: Arc<S>,
    observers: Observers,
}

impl<S: ?Sized> Observed<S> {
    /// Observes the calls of `store`.
    pub fn new(store: Arc<S>, observers: &Observers) -> Self {
        let observers = Arc::clone(observers);
        Self { store, observers }
    }

    fn each(&self, tell: impl Fn(&dyn TurnObserver)) {
        for observer in &*self.observers {
            tell(&**observer);
        }
    }
}

#[async_trait]
impl Turns for Observed<dyn Turns> {
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart> {
        let key = TraceKey::of(&begin.conversation_id, &begin.agent_execution_id);
        let start = self.store.begin_turn(begin).await?;
        if let TurnStart::Begun(begun) = &start {
            for observer in &*self.observers {
                observer.turn_begun(&key, begun).await;
            }
        }
        Ok(start)
    }

    async fn read_inbox(&self, request: &ReadInboxRequest) -> Result<Inbox> {
        self.store.read_inbox(request).await
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn> {
        let begun = self.store.begin_sub_agent(call, agents, on_unknown).await?;
        let (conversation_id, call_id) = (&call.conversation_id, &call.execution_id);
        let sub_agent = ids::sub_agent_execution_id(conversation_id, call_id);
        let key = TraceKey::of(conversation_id, &sub_agent);
        for observer in &*self.observers {
            observer.sub_agent_begun(&key, &begun).await;
        }
        Ok(begun)
    }

    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool> {
        self.store.begin_after_turn(step, calls).await
    }
}

#[async_trait]
impl StepClaims for Observed<dyn StepClaims> {
    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim> {
        let claim = self.store.claim_step(step, worker).await?;
        self.each(|observer| observer.step_claimed(&claim));
        Ok(claim)
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()> {
        self.store.release_step(step, generation).await
    }

    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool> {
        self.store.holds_claim(step, generation).await
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<CompletedStep> {
        let completed = self.store.complete_step(step, state).await?;
        self.each(|observer| observer.step_completed(&completed));
        Ok(completed)
    }
}

#[async_trait]
impl ToolClaims for Observed<dyn ToolClaims> {
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim> {
        let claim = self.store.claim_tool(key, claimant).await?;
        self.each(|observer| observer.tool_claimed(key, &claim));
        Ok(claim)
    }

    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()> {
        self.store.release_tool(key, claimant).await
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord> {
        let record = self.store.finish_tool(key, end).await?;
        self.each(|observer| observer.tool_ended(key, &record));
        Ok(record)
    }
}

#[async_trait]
impl EventWriter for Observed<dyn EventWriter> {
    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        let begun = Instant::now();
        let saved = self.store.save(request).await?;
        let took = begun.elapsed();
        for observer in &*self.observers {
            observer.saved(request, &saved, took).await;
        }
        Ok(saved)
    }
}
