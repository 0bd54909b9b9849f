//! Implements `TurnStore`. Plain reads are here; the transactions are in `begin.rs`, `sub_agents.rs`, `checkpoints.rs`,
//! `claims.rs` and `save.rs`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::{
    Thread,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, ToolCall},
    words::AgentExecutionStatus,
};
use sqlx::types::Json as Column;

use super::{
    Database, after_turn, begin,
    budgets::{self, Freed},
    chain, checkpoints, claims, runnable_approvals, save,
    statement::Statement as _,
    statements::{
        agent_executions::{Definition, HoldsClaim},
        context::Context,
        conversations::{AgentOf, OwnerOf},
        messages::MessageTexts,
        outside::{GrantedTools, UsedDefinitions},
    },
    sub_agents,
};
use crate::{
    api::{
        Access, BackgroundResponse, BeginTurn, BegunTurn, CompletedStep, ContextMessage,
        DefinedTool, Estimate, FailedCall, ModelContext, NotedFailure, OnUnknownAgent, PageLimit,
        ReadBefore, Reservation, Result, Saved, StepClaim, StepKey, ToolClaim, ToolEnd, ToolKey,
        ToolRecord, TurnStart, TurnStore, WorkerId,
    },
    rows::ranked::RankedRow,
};

/// A sequence number that no event has.
const NOTHING_READ: i64 = -1;

#[async_trait]
impl TurnStore for Database {
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

    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>> {
        let query = AgentOf { conversation_id }.query_scalar()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>> {
        let query = OwnerOf { conversation_id }.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>> {
        let texts = MessageTexts {
            conversation_id,
            message_ids,
        };
        let query = texts.query_as()?;
        let texts: Vec<(String, String)> = self.read(query.fetch_all(self.reader())).await?;
        Ok(texts.into_iter().collect())
    }

    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool> {
        self.locking(&step.conversation_id, async |connection| {
            after_turn::begin(connection, step, calls).await
        })
        .await
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>> {
        let query = Definition { hash }.query_scalar()?;
        let found: Option<Column<AgentDefinition>> =
            self.read(query.fetch_optional(self.reader())).await?;
        Ok(found.map(|definition| definition.0))
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext> {
        let select = Context {
            conversation_id,
            row_limit: i64::from(limit.rows) + 1,
            thread: thread.sub_agent().unwrap_or_default(),
            most_bytes: i64::from(limit.bytes),
            read_cut: read.map_or(NOTHING_READ, |read| i64::from(read.cut)),
            read_sequence: read.map_or(NOTHING_READ, |read| i64::from(read.last_sequence)),
            read_created_at: read.map(|read| read.last_created_at),
        };
        let query = select.query_as()?;
        let rows: Vec<RankedRow<ContextMessage>> =
            self.read(query.fetch_all(self.reader())).await?;
        let (messages, has_more) = limit.cut(rows);
        Ok(ModelContext {
            goes_on: read.is_some_and(|read| read.goes_on_with(&messages)),
            messages,
            has_more,
        })
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        let granted = GrantedTools {
            conversation_id,
            tool_names,
        };
        let query = granted.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        let runnable = runnable_approvals();
        let used = UsedDefinitions {
            conversation_id,
            tool_names,
            runnable_approvals: &runnable,
        };
        let query = used.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim> {
        let call = self.in_time(async {
            checkpoints::claim_step(&mut *self.single().await?, step, worker).await
        });
        let claimed = self.in_claim_share(&step.conversation_id, call).await?;
        if let Some(generation) = claimed.cut_before {
            // The cut call has an older generation. The reservation stays until settled here.
            self.free(step, generation, Freed::Cut).await?;
        }
        Ok(claimed.claim)
    }

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

    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()> {
        self.free(step, generation, Freed::Refused).await
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()> {
        let call = self.in_time(async {
            checkpoints::release_step(&mut *self.single().await?, step, generation).await
        });
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

    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()> {
        let call = self.in_time(async {
            checkpoints::save_partial(&mut *self.single().await?, step, &state).await
        });
        self.in_claim_share(&step.conversation_id, call).await
    }

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
            self.in_time(async { claims::finish_tool(&mut *self.single().await?, key, end).await });
        let record = self.in_claim_share(&key.conversation_id, call).await?;
        self.note_tool_end(key, &record);
        Ok(record)
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        if let Some(saved) = self.save_as_read(request).await? {
            return Ok(saved);
        }
        self.locking(&request.conversation_id, async |connection| {
            save::save(connection, request).await
        })
        .await
    }
}

impl Database {
    /// Settles a call without an answer, in a transaction.
    async fn free(&self, step: &StepKey, generation: u32, how: Freed) -> Result<()> {
        let call = self
            .transaction(async |connection| budgets::free(connection, step, generation, how).await);
        self.in_claim_share(&step.conversation_id, call).await
    }
}
