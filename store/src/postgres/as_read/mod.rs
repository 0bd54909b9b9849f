//! Begins and saves in two round trips, and messages in one, when all is as in a turn in which nothing goes wrong.
//!
//! One statement reads everything without a lock. It finds nothing when anything is not as expected: the batch is stored,
//! the agent execution does not run, a tool is open. Then one statement writes everything, if the conversation is as it
//! was read: with the same largest sequence number, of the same log, of a run that was not replaced. Whoever changes
//! what a batch is built from appends an event under the conversation's lock, so nothing of it has changed then. The rest
//! of what a batch reads never changes: checkpoints of calls that have ended, ends of tools.
//!
//! When nothing was found or written, the caller does the same under the lock (`backend/begin.rs`, `backend/save.rs`), which
//! decides every case.
//!
//! - `read.rs`: the statements that read
//! - `known.rs`: what need not be read, because this process has just written it

pub(super) mod known;
pub(crate) mod read;

use chrono::{DateTime, Utc};
use everturn_proto::turn::{LlmCompleteState, SaveRequest};
use sqlx::PgConnection;

use super::{
    PostgresStore,
    backend::{begin::FirstBatch, definitions, key_of_caller, runs, sql::messages, write},
    parts::Parts,
};
use crate::{
    api::{
        Access, BeginTurn, BegunTurn, NewMessage, OnUnknownAgent, PinnedAgent, QueuedMessage,
        Result, Saved, StepKey, ToolKey, ToolRecord,
    },
    batch::{self, Batch, BatchRequest, Snapshot},
    columns::now,
    error::StoreError,
};
use read::{ReadBatch, ReadConversation, ReadMessage};

/// The parameters of `ADVANCE_CONVERSATION` come first. Then: `$6` last sequence and `$7` log as read, `$8` epoch of the run.
const ADVANCE_AS_READ: &str = advance_conversation!(
    " AND last_sequence = $6 AND ",
    log_id!(),
    " = $7 AND run_epoch <= $8 RETURNING id"
);

/// Does what [`ADVANCE_AS_READ`] does, with the epoch as read in `$8`: meanwhile no run was given another one.
const ADVANCE_UNCLAIMED: &str = advance_conversation!(
    " AND last_sequence = $6 AND ",
    log_id!(),
    " = $7 AND run_epoch = $8 AND granted_epoch = $8 RETURNING id"
);

impl PostgresStore {
    /// Saves a batch; `None` when the lock is needed to decide.
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

    /// Builds a batch and writes it; `None` when that is not one statement.
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
        let batch = batch::build(request, &Snapshot { now, ..snapshot })?;
        let mut parts = guarded(ADVANCE_AS_READ, &conversation, step, &batch, now);
        write::batch(&mut parts, request, &batch, now);
        write::advance_agent_execution(&mut parts, step, &batch, steps, now);
        write::results(&mut parts, step, &batch);
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

    /// Notes a turn that was begun, under the lock or not.
    pub(super) fn note_turn(&self, begin: &BeginTurn, begun: &BegunTurn) {
        if begun.is_new {
            self.known.begun(begin, begun);
        }
    }

    /// Notes the reply that is stored of a step.
    pub(super) fn note_reply(&self, step: &StepKey, state: &LlmCompleteState) {
        self.known.replied(step, state);
    }

    /// Notes how a tool is stored to have ended.
    pub(super) fn note_tool_end(&self, key: &ToolKey, record: &ToolRecord) {
        self.known.ended(key, record);
    }

    /// Begins a turn; `None` when the lock is needed to decide.
    pub(super) async fn begin_as_read(&self, turn: &BeginTurn) -> Result<Option<BegunTurn>> {
        let is_unknown =
            turn.agent.is_only_a_name() && turn.on_unknown_agent == OnUnknownAgent::Refuse;
        let is_first = turn.epoch.is_none_or(|epoch| epoch == runs::NONE_YET);
        if is_unknown || !is_first {
            return Ok(None);
        }
        self.as_read(
            &turn.conversation_id,
            async |connection| match read::waiting_message(connection, turn).await? {
                Some(read) => begin(connection, turn, read).await,
                None => Ok(None),
            },
        )
        .await
    }

    /// Queues a message while the conversation has less than half of the messages that may wait; `None` when the lock is
    /// needed to count. A gateway makes one such call for a conversation at a time, so that only more gateways than that
    /// half could exceed the limit.
    pub(super) async fn queue_as_read(
        &self,
        access: &Access,
        new: &NewMessage,
    ) -> Result<Option<QueuedMessage>> {
        if !new.attachments.is_empty() {
            return Ok(None);
        }
        let half = new.max_queued / 2;
        let key = key_of_caller(access, &new.conversation_id);
        self.as_read(&key, async |connection| {
            let queued = messages::queue(new, &[], half, access, now()).fetch_optional(connection);
            let has_others = queued.await?;
            Ok(has_others.map(|has_others| QueuedMessage::new(&new.message_id, has_others)))
        })
        .await
    }

    /// Makes a call that may wait for the lock of the conversation. `key` is its id, or [`key_of_caller`].
    async fn as_read<T>(
        &self,
        key: &str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        // On the heap, because it is large, and would be in both futures around it.
        let call = Box::pin(self.together(work));
        match self.in_lock_share(key, call).await {
            // A key or the guard refused it: somebody else was there.
            Err(StoreError::Conflict(_)) => Ok(None),
            done => done,
        }
    }
}

async fn begin(
    connection: &mut PgConnection,
    turn: &BeginTurn,
    read: ReadMessage,
) -> Result<Option<BegunTurn>> {
    let ReadMessage {
        conversation,
        tenant_id,
        run_epoch,
        message,
    } = read;
    // An agent or a run of another tenant is seen to under the lock.
    if !turn.agent.serves(&tenant_id) || tenant_id != turn.tenant_id {
        return Ok(None);
    }
    let (hash, now) = (definitions::hash(&turn.agent)?, now());
    let first = FirstBatch::of(turn, conversation.last_sequence, Some(message))?;
    let step = StepKey {
        epoch: Some(run_epoch),
        ..first.request.step.clone()
    };
    let mut parts = guarded(ADVANCE_UNCLAIMED, &conversation, &step, &first.batch, now);
    first.add_to(&mut parts, turn, &hash, now);
    parts.execute(connection).await?;
    let agent = PinnedAgent {
        definition: turn.agent.clone(),
        hash,
    };
    Ok(Some(BegunTurn::now(
        agent,
        turn.epoch.map(|_| run_epoch),
        conversation.log_id,
        first.batch.last_sequence,
    )))
}

/// Begins the statement that writes, with the guard in it. `step` names the epoch.
fn guarded(
    text: &'static str,
    conversation: &ReadConversation,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Parts {
    Parts::guarded_by(text, |values| {
        write::bind_advance(values, step, batch, now);
        values
            .bind(i64::from(conversation.last_sequence))
            .bind(conversation.log_id.as_str())
            .bind(runs::newest(step.epoch));
    })
}
