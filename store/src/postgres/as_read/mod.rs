//! Begins and saves in two round trips, and messages in one, for the usual course of a turn.
//!
//! One statement reads the batch's input without a lock. The statement finds no row in an unusual case: the batch is
//! stored, the agent execution is not running, a tool is open. A second statement then writes the batch, if the
//! conversation is unchanged since the read: identical last sequence number and log, and no newer run. A writer that
//! changes a batch's input appends an event under the conversation's lock, so an unchanged number proves unchanged
//! input. The other rows that a batch reads never change: checkpoints of ended calls, ends of tools.
//!
//! When a statement finds or writes no row, the caller repeats the work under the lock (`backend/begin.rs`,
//! `backend/save.rs`), which decides every case.
//!
//! - `read.rs`: the reading statements
//! - `known.rs`: a cache of rows that this process has just written

pub(super) mod known;
pub(crate) mod read;

use everturn_proto::{
    turn::{LlmCompleteState, SaveRequest},
    words::OnBusy,
};
use sqlx::PgConnection;

use super::{
    PostgresStore,
    backend::{
        append, begin::FirstBatch, definitions, key_of_caller, list_changes,
        messages::queue_message, runs, statement::Statement as _, write,
    },
    parts::Parts,
    statements::as_read::{AdvanceAsRead, AdvanceUnclaimed},
};
use crate::{
    api::{
        Access, BeginTurn, BegunTurn, NewMessage, OnUnknownAgent, PinnedAgent, QueuedMessage,
        Result, Saved, Spent, StepKey, ToolKey, ToolRecord,
    },
    batch::{self, BatchRequest, Snapshot},
    columns::{now, wide},
    error::StoreError,
};
use read::{ReadBatch, ReadMessage};

impl PostgresStore {
    /// Saves a batch; `None` when only the lock can decide.
    pub(super) async fn save_as_read(&self, request: &SaveRequest) -> Result<Option<Saved>> {
        let request = BatchRequest::try_from(request)?;
        let id = &request.step.conversation_id;
        let saved = self.as_read(id, async |connection| {
            if let Some(known) = self.known.batch(&request) {
                match self.save_built(connection, &request, known).await {
                    Err(StoreError::Conflict(_)) => self.known.forget(id),
                    done => return done,
                }
            }
            match read::batch(connection, &request).await? {
                Some(read) => self.save_built(connection, &request, read).await,
                None => Ok(None),
            }
        });
        let saved = saved.await;
        if !matches!(saved, Ok(Some(_))) {
            self.known.forget(id);
        }
        saved
    }

    /// Builds and writes a batch; `None` when the batch needs more than one statement.
    async fn save_built(
        &self,
        connection: &mut PgConnection,
        request: &BatchRequest,
        read: ReadBatch,
    ) -> Result<Option<Saved>> {
        let ReadBatch {
            conversation,
            snapshot,
        } = read;
        let (step, steps, now) = (&request.step, snapshot.steps, now());
        let clock = append::clock(connection, request, &snapshot, now).await?;
        let snapshot = Snapshot {
            now,
            clock,
            ..snapshot
        };
        let batch = batch::build(request, &snapshot)?;
        let Spent {
            usage,
            nano_usd,
            estimated_calls,
            cut,
        } = batch.spent;
        let mut parts = Parts::guarded_by(AdvanceAsRead {
            conversation_id: &step.conversation_id,
            last_sequence: i64::from(batch.last_sequence),
            new_messages: i64::from(batch.new_messages),
            now,
            changes_lists: batch.changes_lists(),
            title: batch.title.as_deref().unwrap_or_default(),
            spent_input: i64::from(usage.input_tokens),
            spent_output: i64::from(usage.output_tokens),
            spent_cached: i64::from(usage.cached_tokens),
            spent_cache_write: i64::from(usage.cache_write_tokens),
            spent_reasoning: i64::from(usage.reasoning_tokens),
            spent_nano: nano_usd.map(wide),
            spent_estimated: i64::from(estimated_calls),
            spent_cut_calls: i64::from(cut.calls),
            spent_cut_tokens: i64::from(cut.tokens),
            spent_cut_nano: wide(cut.nano_usd),
            read_sequence: i64::from(conversation.last_sequence),
            read_log_id: conversation.log_id.as_str(),
            run_epoch: runs::newest(step.epoch),
        });
        write::batch(&mut parts, request, &batch, now);
        write::advance_agent_execution(&mut parts, step, &batch, steps, now);
        write::results(&mut parts, step, &batch, now);
        list_changes::note_batch(&mut parts, &step.conversation_id, &batch, now);
        if batch.events.is_empty() || !parts.is_one_statement() {
            return Ok(None);
        }
        parts.execute(connection).await?;
        self.known.saved(request, &conversation, &batch);
        Ok(Some(Saved {
            log_id: conversation.log_id,
            result: batch.result(),
            sealed: batch::sealed(request),
            ended: batch.end,
        }))
    }

    /// Notes a turn that has begun, with or without the lock.
    pub(super) fn note_turn(&self, begin: &BeginTurn, begun: &BegunTurn) {
        if begun.is_new {
            self.known.begun(begin, begun);
        }
    }

    /// Notes the stored reply of a step.
    pub(super) fn note_reply(&self, step: &StepKey, state: &LlmCompleteState) {
        self.known.replied(step, state);
    }

    /// Notes that a step is called again: calls without a reply may have been counted in other processes.
    pub(super) fn note_repeated_call(&self, step: &StepKey) {
        self.known.forget(&step.conversation_id);
    }

    /// Notes the stored end of a tool.
    pub(super) fn note_tool_end(&self, key: &ToolKey, record: &ToolRecord) {
        self.known.ended(key, record);
    }

    /// Begins a turn; `None` when only the lock can decide.
    pub(super) async fn begin_as_read(&self, turn: &BeginTurn) -> Result<Option<BegunTurn>> {
        let is_unknown =
            turn.agent.is_only_a_name() && turn.on_unknown_agent == OnUnknownAgent::Refuse;
        let is_first = turn.epoch == Some(runs::NONE_YET);
        if is_unknown || !is_first {
            return Ok(None);
        }
        self.as_read(
            &turn.conversation_id,
            async |connection| match read::waiting_message(connection, turn).await? {
                Some(read) => begin(connection, turn.clone(), read).await,
                None => Ok(None),
            },
        )
        .await
    }

    /// Queues a message while fewer than half of the allowed messages wait in the conversation; `None` when the count
    /// needs the lock. A gateway makes one such call per conversation at a time, so only a number of gateways above
    /// half the limit could exceed the limit.
    pub(super) async fn queue_as_read(
        &self,
        access: &Access,
        new: &NewMessage,
    ) -> Result<Option<QueuedMessage>> {
        // An interrupting message also changes the older waiting messages.
        if !new.attachments.is_empty() || new.on_busy == OnBusy::Interrupt {
            return Ok(None);
        }
        let half = new.max_queued / 2;
        let key = key_of_caller(access, &new.conversation_id);
        self.as_read(&key, async |connection| {
            let queue = queue_message(new, &[], half, access, now()).query_scalar()?;
            let has_others = queue.fetch_optional(connection).await?;
            Ok(has_others.map(|has_others| QueuedMessage::new(&new.message_id, has_others)))
        })
        .await
    }

    /// Runs a call that may wait for the conversation's lock. `key` is the conversation's id, or [`key_of_caller`].
    async fn as_read<T>(
        &self,
        key: &str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        // On the heap, because the future is large and would be copied into two surrounding futures.
        let call = Box::pin(self.together(work));
        match self.in_lock_share(key, call).await {
            // A unique key or the guard refused the statement: another writer came first.
            Err(StoreError::Conflict(_)) => Ok(None),
            done => done,
        }
    }
}

async fn begin(
    connection: &mut PgConnection,
    mut turn: BeginTurn,
    read: ReadMessage,
) -> Result<Option<BegunTurn>> {
    let ReadMessage {
        conversation,
        tenant_id,
        run_epoch,
        message,
    } = read;
    // The caller handles an agent or a run of another tenant under the lock.
    if !turn.agent.serves(&tenant_id) || tenant_id != turn.tenant_id {
        return Ok(None);
    }
    turn.agent = turn.agent.with_choice(message.model.as_deref());
    if turn.agent.unknown_model.is_some() {
        return Ok(None);
    }
    let (hash, now) = (definitions::hash(&turn.agent)?, now());
    let first = FirstBatch::of(&turn, conversation.last_sequence, Some(message))?;
    let batch = &first.batch;
    let mut parts = Parts::guarded_by(AdvanceUnclaimed {
        conversation_id: &turn.conversation_id,
        last_sequence: i64::from(batch.last_sequence),
        new_messages: i64::from(batch.new_messages),
        now,
        title: batch.title.as_deref().unwrap_or_default(),
        read_sequence: i64::from(conversation.last_sequence),
        read_log_id: conversation.log_id.as_str(),
        read_epoch: i64::from(run_epoch),
    });
    first.add_to(&mut parts, &turn, &hash, now);
    list_changes::note_batch(&mut parts, &turn.conversation_id, batch, now);
    parts.execute(connection).await?;
    let agent = PinnedAgent {
        definition: turn.agent,
        hash,
    };
    Ok(Some(BegunTurn::now(
        agent,
        run_epoch,
        conversation.log_id,
        first.batch.last_sequence,
    )))
}
