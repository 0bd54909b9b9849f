//! Implements the traits of workers that write: `Turns`, `StepClaims`, `ModelCalls`, `ToolClaims` and `EventWriter`. The
//! transactions are in `begin.rs`, `sub_agents.rs`, `checkpoints.rs`, `claims.rs` and `save.rs`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::{
    turn::{AgentDefinition, Inbox, LlmCompleteState, ReadInboxRequest, SaveRequest, ToolCall},
    words::AgentExecutionStatus,
};

use super::{
    Database, after_turn, begin, budgets, chain, checkpoints, claims, inbox, past_calls, save,
    statement::Statement as _, statements::agent_executions::HoldsClaim, sub_agents,
};
use crate::api::{
    BackgroundResponse, BeginTurn, BegunTurn, CompletedStep, CutCall, Estimate, EventWriter,
    FailedCall, FailedTry, ModelCalls, NotedFailure, OnUnknownAgent, Reservation, Result, Saved,
    StepClaim, StepClaims, StepKey, ToolClaim, ToolClaims, ToolEnd, ToolKey, ToolRecord, TurnStart,
    Turns, WorkerId,
};

#[async_trait]
impl Turns for Database {
    async fn begin_turn(&self, turn: BeginTurn) -> Result<TurnStart> {
        let start = match self.begin_as_read(&turn).await? {
            Some(begun) => TurnStart::Begun(Box::new(begun)),
            // On the heap, because the future is large: it holds two definitions of an agent.
            None => {
                self.locking(&turn.conversation_id, async |connection| {
                    Box::pin(begin::begin_turn(connection, turn.clone())).await
                })
                .await?
            }
        };
        if let TurnStart::Begun(begun) = &start {
            self.note_turn(&turn, begun);
        }
        Ok(start)
    }

    async fn read_inbox(&self, request: &ReadInboxRequest) -> Result<Inbox> {
        if inbox::has_contents(request) {
            return self
                .locking(&request.conversation_id, async |connection| {
                    inbox::store_and_read(connection, request).await
                })
                .await;
        }
        let read = async { inbox::read(&mut *self.reader().acquire().await?, request).await };
        self.in_time(Box::pin(read)).await
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn> {
        self.locking(&call.conversation_id, async |connection| {
            sub_agents::begin_sub_agent(connection, call, agents, on_unknown).await
        })
        .await
    }

    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool> {
        self.locking(&step.conversation_id, async |connection| {
            after_turn::begin(connection, step, calls).await
        })
        .await
    }
}

#[async_trait]
impl StepClaims for Database {
    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim> {
        let call = self.in_time(async {
            checkpoints::claim_step(&mut *self.single().await?, step, worker).await
        });
        let claimed = self.in_claim_share(&step.conversation_id, call).await?;
        if let Some(generation) = claimed.cut_before {
            // The cut call has an older generation, and stays open until settled here.
            self.count_cut(step, generation).await?;
        }
        if matches!(&claimed.claim, StepClaim::Call(call) if call.calls > 1) {
            self.note_repeated_call(step);
        }
        Ok(claimed.claim)
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()> {
        let call = self.in_time(async {
            checkpoints::release_step(&mut *self.single().await?, step, generation).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool> {
        let select = HoldsClaim {
            agent_execution_id: &step.agent_execution_id,
            conversation_id: &step.conversation_id,
            generation: i64::from(generation),
            status_running: AgentExecutionStatus::Running.as_str(),
        };
        let query = select.query_scalar()?;
        self.read(query.fetch_one(self.reader())).await
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<CompletedStep> {
        let call = self
            .together(async |connection| checkpoints::complete_step(connection, step, state).await);
        let completed = self.in_claim_share(&step.conversation_id, call).await?;
        if let CompletedStep::Stored(state) = &completed {
            self.note_reply(step, state);
        }
        Ok(completed)
    }
}

#[async_trait]
impl ModelCalls for Database {
    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation> {
        let call = self.together(async |connection| {
            budgets::reserve(connection, step, generation, call, other_model).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn note_unanswered_call(
        &self,
        step: &StepKey,
        generation: u32,
        cut: Option<&CutCall>,
    ) -> Result<()> {
        let call = self.in_time(async {
            let connection = &mut *self.single().await?;
            budgets::note_unanswered_call(connection, step, generation, cut).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()> {
        let call = self
            .transaction(async |connection| budgets::release(connection, step, generation).await);
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool> {
        let call = self.in_time(async {
            checkpoints::note_response(&mut *self.single().await?, step, generation, response).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure> {
        if let Some(event) = &failed.fallback {
            return self
                .locking(&step.conversation_id, async |connection| {
                    chain::fall_back(connection, step, generation, failed, event).await
                })
                .await;
        }
        let call = self.in_time(async {
            let connection = &mut *self.single().await?;
            checkpoints::note_failed_call(connection, step, generation, failed).await
        });
        let is_noted = self.in_claim_share(&step.conversation_id, call).await?;
        Ok(if is_noted {
            NotedFailure::Counted
        } else {
            NotedFailure::Superseded
        })
    }

    async fn note_try(&self, step: &StepKey, tried: &FailedTry) -> Result<()> {
        let call = self
            .in_time(async { past_calls::note_try(&mut *self.single().await?, step, tried).await });
        self.in_claim_share(&step.conversation_id, call).await
    }

    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()> {
        let call = self.in_time(async {
            checkpoints::save_partial(&mut *self.single().await?, step, &state).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }
}

impl Database {
    /// Counts the cut call before a claim, in a transaction.
    async fn count_cut(&self, step: &StepKey, generation: u32) -> Result<()> {
        let call = self
            .transaction(async |connection| budgets::count_cut(connection, step, generation).await);
        self.in_claim_share(&step.conversation_id, call).await
    }
}

#[async_trait]
impl ToolClaims for Database {
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim> {
        let call =
            self.together(async |connection| claims::claim_tool(connection, key, claimant).await);
        self.in_claim_share(&key.conversation_id, call).await
    }

    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()> {
        let call = self.in_time(async {
            claims::release_tool(&mut *self.single().await?, key, claimant).await
        });
        self.in_claim_share(&key.conversation_id, call).await
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord> {
        let call =
            self.together(async |connection| claims::finish_tool(connection, key, end).await);
        let record = self.in_claim_share(&key.conversation_id, call).await?;
        self.note_tool_end(key, &record);
        Ok(record)
    }
}

#[async_trait]
impl EventWriter for Database {
    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        if let Some(saved) = self.save_as_read(request).await? {
            return Ok(saved);
        }
        let keep_days = self.audit_keep_days;
        self.locking(&request.conversation_id, async |connection| {
            save::save(connection, request, keep_days).await
        })
        .await
    }
}
