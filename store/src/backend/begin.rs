//! Begins a turn: one transaction takes the message, pins the agent and inserts the agent execution.

use chrono::{DateTime, Utc};
use everturn_proto::{
    ConversationName,
    turn::AgentDefinition,
    words::{AgentExecutionStatus, FailureCode},
};

use super::{
    Connection,
    append::{Appended, append},
    budgets,
    conversations::new_log_id,
    definitions,
    dialect::Parts,
    inbox, list_changes,
    lock::{LockedConversation, lock_conversation, lock_known, lock_running},
    retry::begin_retry,
    runs::{self, Entry},
    snapshot::load_message,
    statement::Statement as _,
    statements::{
        agent_executions::{BegunTurns, InsertTurn},
        conversations::InsertConversationUnlessDeleted,
        messages::LeaveOutMessage,
        removal::IsDeleted,
    },
    write,
};
use crate::{
    api::{
        BeginTurn, BegunTurn, OnUnknownAgent, PinnedAgent, Result, StepKey, TurnFailure, TurnStart,
    },
    batch::{self, AgentExecutionEnd, Batch, BatchRequest, Save, Snapshot, StoredMessage},
    columns::now,
    error::{Missing, StoreError},
    rows::turns::{BegunRow, UserMessageRow},
};

/// Longest title made from a message, in characters.
const TITLE_CHARS: usize = 80;

pub(super) async fn begin_turn(
    connection: &mut Connection,
    mut begin: BeginTurn,
) -> Result<TurnStart> {
    let conversation = lock_or_create(connection, &begin).await?;
    // An agent of another tenant counts as unknown. The conversation's row decides the tenant, not the run's argument.
    if !begin.agent.serves(&conversation.tenant_id) {
        begin.agent = AgentDefinition::only_a_name(begin.agent.name);
    }
    let mut begun = begun_turns(connection, &begin).await?;
    let own = begun
        .iter()
        .position(|row| row.id == begin.agent_execution_id);
    let own = own.map(|at| begun.swap_remove(at));
    let message = match &own {
        Some(_) => None,
        None => load_message(connection, &begin.conversation_id, &begin.message_id).await?,
    };
    if let Some(row) = &message {
        begin.agent = begin.agent.with_choice(row.message.model.as_deref());
    }
    let has_ended = own
        .as_ref()
        .is_some_and(|own| own.status != AgentExecutionStatus::Running);
    let is_answered = message.as_ref().is_some_and(is_answered_elsewhere);
    let is_unknown = begin.agent.is_only_a_name() && own.is_none() && !is_answered;
    if is_unknown && begin.on_unknown_agent == OnUnknownAgent::Refuse {
        return Err(StoreError::not_found(Missing::Agent, &begin.agent.name));
    }
    let epoch = if has_ended || is_answered {
        // The turn is over or answered, so the run changes nothing and needs no new epoch.
        begin.epoch.unwrap_or(conversation.run_epoch)
    } else {
        let takes_over = own.is_some() || !begun.is_empty();
        let id = &begin.conversation_id;
        match runs::enter(connection, id, &conversation, begin.epoch, takes_over).await? {
            Entry::Goes(epoch) => epoch,
            Entry::AsksAgain(epoch) => return Ok(TurnStart::AskAgain { epoch }),
        }
    };
    let LockedConversation {
        log_id,
        last_sequence,
        ..
    } = conversation;
    if let Some(own) = own {
        let mut turn = own.begun(log_id, last_sequence, epoch);
        if !has_ended {
            let (id, message_id) = (&begin.conversation_id, &begin.message_id);
            turn.cancel_reason = inbox::cancel_reason(connection, id, message_id).await?;
        }
        return Ok(TurnStart::Begun(Box::new(turn)));
    }
    let hash = definitions::hash(&begin.agent)?;
    let agent = PinnedAgent {
        definition: begin.agent.clone(),
        hash: hash.clone(),
    };
    let mut turn = BegunTurn::now(agent, epoch, log_id, last_sequence);
    if is_answered {
        (turn.status, turn.is_new) = (AgentExecutionStatus::Completed, false);
    } else {
        end_lost(connection, &begin.conversation_id, &begun, &mut turn).await?;
        take(connection, &begin, &hash, message, &mut turn).await?;
    }
    Ok(TurnStart::Begun(Box::new(turn)))
}

/// Ends the lost turns that `begun_turns` found.
async fn end_lost(
    connection: &mut Connection,
    conversation_id: &str,
    lost: &[BegunRow],
    turn: &mut BegunTurn,
) -> Result<()> {
    if lost.len() > 1 {
        lock_running(connection, conversation_id).await?;
    }
    for lost in lost {
        let step = lost.next_step(conversation_id);
        let ended = end_failed(connection, step, LOST, turn.last_sequence).await?;
        turn.last_sequence = ended.result.last_sequence;
        turn.sealed.extend(ended.sealed);
    }
    Ok(())
}

/// Takes the message of the turn. The turn ends at its start when the message was cancelled while it waited, and for a
/// retry when another turn has begun since the failure.
async fn take(
    connection: &mut Connection,
    begin: &BeginTurn,
    agent_hash: &str,
    row: Option<UserMessageRow>,
    turn: &mut BegunTurn,
) -> Result<()> {
    let (id, message_id) = (&begin.conversation_id, &begin.message_id);
    let (message, cancel_reason) = row.map(|row| (row.message, row.cancel_reason)).unzip();
    let withdrawn = cancel_reason.flatten();
    let is_retry = message
        .as_ref()
        .is_some_and(|message: &StoredMessage| message.is_retry);
    let is_late =
        is_retry && withdrawn.is_none() && !begin_retry(connection, id, message_id).await?;
    turn.last_sequence =
        take_message(connection, begin, agent_hash, turn.last_sequence, message).await?;
    if withdrawn.is_some() {
        let leave_out = LeaveOutMessage {
            conversation_id: id,
            message_id,
            agent_execution_id: &begin.agent_execution_id,
        };
        leave_out.query()?.execute(&mut *connection).await?;
    }
    let late = is_late.then(|| "another turn has begun since the failure".to_owned());
    if let Some(reason) = withdrawn.or(late) {
        let end = AgentExecutionEnd::Cancelled { reason };
        let ended = end_turn(connection, first_step(begin), end, turn.last_sequence).await?;
        turn.last_sequence = ended.result.last_sequence;
        (turn.status, turn.is_new) = (AgentExecutionStatus::Cancelled, false);
    }
    Ok(())
}

/// Writes the turn's agent execution with its agent, its first message and the conversation's title. Returns the
/// largest sequence number.
async fn take_message(
    connection: &mut Connection,
    begin: &BeginTurn,
    agent_hash: &str,
    last_sequence: u32,
    message: Option<StoredMessage>,
) -> Result<u32> {
    let now = now();
    let first = FirstBatch::of(begin, last_sequence, message)?;
    let mut parts = Parts::default();
    first.add_to(&mut parts, begin, agent_hash, now);
    write::advance_conversation(&mut parts, &first.request.step, &first.batch, now);
    list_changes::note_batch(&mut parts, &begin.conversation_id, &first.batch, now);
    parts.execute(connection).await?;
    Ok(first.batch.last_sequence)
}

/// The first batch of a turn.
pub(crate) struct FirstBatch {
    pub(crate) request: BatchRequest,
    pub(crate) batch: Batch,
}

impl FirstBatch {
    /// Builds the first batch from a stored message, or from the text in the request.
    pub(crate) fn of(
        begin: &BeginTurn,
        last_sequence: u32,
        message: Option<StoredMessage>,
    ) -> Result<Self> {
        let is_retry = message.as_ref().is_some_and(|message| message.is_retry);
        let stored = message.as_ref().map(|message| message.content.as_str());
        let text = stored.or(begin.content.as_deref()).unwrap_or_default();
        let title = (!is_retry).then(|| title(text));
        let request = BatchRequest {
            step: first_step(begin),
            save: Save::UserMessage {
                message_id: begin.message_id.clone(),
                content: begin.content.clone(),
            },
        };
        let snapshot = Snapshot {
            last_sequence,
            message,
            ..Snapshot::default()
        };
        let mut batch = batch::build(&request, &snapshot)?;
        (batch.title, batch.begins_turn) = (title, true);
        Ok(Self { request, batch })
    }

    /// Adds every row except the conversation's own changes.
    pub(crate) fn add_to(
        &self,
        parts: &mut Parts,
        begin: &BeginTurn,
        agent_hash: &str,
        now: DateTime<Utc>,
    ) {
        definitions::insert(parts, agent_hash, &begin.agent);
        write::batch(parts, &self.request, &self.batch, now);
        parts.add(InsertTurn {
            agent_execution_id: &begin.agent_execution_id,
            conversation_id: &begin.conversation_id,
            message_id: &begin.message_id,
            agent: &begin.agent.name,
            agent_hash,
            now,
            status_running: AgentExecutionStatus::Running.as_str(),
        });
        budgets::begin(parts, begin);
    }
}

/// Locks the conversation, and creates an unknown conversation first. Of several concurrent creators, the first inserts
/// the row. Later creators wait for the insert, and then for the lock.
///
/// A worker that begins a turn late does not create a deleted conversation again. The removal and its tombstone are
/// committed together, so a transaction that finds no row to lock sees the tombstone in the next statement.
async fn lock_or_create(
    connection: &mut Connection,
    begin: &BeginTurn,
) -> Result<LockedConversation> {
    let id = &begin.conversation_id;
    // Only a workflow started by hand can have a wrong tenant, and its user may have meant another conversation.
    ConversationName::check_id(id, &begin.tenant_id).map_err(StoreError::ForeignConversation)?;
    if let Some(locked) = lock_conversation(connection, id).await? {
        return Ok(locked);
    }
    let insert = InsertConversationUnlessDeleted {
        conversation_id: id,
        tenant_id: &begin.tenant_id,
        owner: "",
        agent: &begin.agent.name,
        title: "",
        now: now(),
        log_id: &new_log_id(),
    };
    insert.query()?.fetch_all(&mut *connection).await?;
    if let Some(locked) = lock_conversation(connection, id).await? {
        return Ok(locked);
    }
    let deleted = IsDeleted {
        conversation_id: id,
    };
    let deleted: i64 = deleted.query_scalar()?.fetch_one(connection).await?;
    Err(if deleted > 0 {
        StoreError::not_found(Missing::Conversation, &begin.conversation_id)
    } else {
        // The conversation was removed in between, or an expired conversation is hidden while its rows are removed.
        StoreError::Unavailable("the conversation was removed at the start of a turn".into())
    })
}

/// Reads this turn's row, if present, and the rows of running turns.
async fn begun_turns(connection: &mut Connection, begin: &BeginTurn) -> Result<Vec<BegunRow>> {
    let select = BegunTurns {
        agent_execution_id: &begin.agent_execution_id,
        conversation_id: &begin.conversation_id,
        now: now(),
    };
    Ok(select.query_as()?.fetch_all(connection).await?)
}

/// Ends the turn of a message as failed. A message that still waits gets a turn first. Returns false when the turn has
/// already ended, or when the turn has not begun and another turn runs.
pub(super) async fn fail_turn(
    connection: &mut Connection,
    begin: BeginTurn,
    failure: TurnFailure,
) -> Result<bool> {
    let id = &begin.conversation_id;
    let LockedConversation { last_sequence, .. } = lock_known(connection, id).await?;
    let begun = begun_turns(connection, &begin).await?;
    if let Some(own) = begun.iter().find(|row| row.id == begin.agent_execution_id) {
        if own.status != AgentExecutionStatus::Running {
            return Ok(false);
        }
        end_failed(connection, own.next_step(id), failure, last_sequence).await?;
        return Ok(true);
    }
    let message = load_message(connection, id, &begin.message_id).await?;
    let waiting = message.filter(|row| row.message.is_waiting && begun.is_empty());
    let Some(message) = waiting.map(|row| row.message) else {
        return Ok(false);
    };
    let hash = definitions::hash(&begin.agent)?;
    let last_sequence =
        take_message(connection, &begin, &hash, last_sequence, Some(message)).await?;
    end_failed(connection, first_step(&begin), failure, last_sequence).await?;
    Ok(true)
}

/// Failure of a lost turn, written when a newer message begins its turn.
const LOST: TurnFailure = TurnFailure {
    code: FailureCode::TurnLost,
    message: "The turn was stopped from outside, and a newer message began another turn. Send this message again if \
              you still need an answer.",
};

/// Ends a turn whose workflow is gone. The end belongs to the step after the saved steps, because that step may have
/// left a text. As at every end, open tool calls are closed and the text so far is kept.
async fn end_failed(
    connection: &mut Connection,
    step: StepKey,
    failure: TurnFailure,
    last_sequence: u32,
) -> Result<Appended> {
    let end = AgentExecutionEnd::Failed {
        code: failure.code,
        message: failure.message.into(),
    };
    end_turn(connection, step, end, last_sequence).await
}

async fn end_turn(
    connection: &mut Connection,
    step: StepKey,
    end: AgentExecutionEnd,
    last_sequence: u32,
) -> Result<Appended> {
    let saved_steps = step.step;
    let request = BatchRequest {
        step,
        save: Save::End(end),
    };
    append(connection, &request, last_sequence, saved_steps).await
}

/// Returns the key of a turn's first step.
fn first_step(begin: &BeginTurn) -> StepKey {
    StepKey {
        conversation_id: begin.conversation_id.clone(),
        message_id: begin.message_id.clone(),
        agent_execution_id: begin.agent_execution_id.clone(),
        step: 0,
        epoch: begin.epoch,
    }
}

/// Returns true for a message that another turn took by steering and answers. A message whose taker was cancelled or
/// failed has no answer: the message gets a turn of its own, and the stored event is not repeated.
fn is_answered_elsewhere(row: &UserMessageRow) -> bool {
    let is_unanswered = match row.taker_status() {
        Some(AgentExecutionStatus::Cancelled | AgentExecutionStatus::Failed) => true,
        Some(
            AgentExecutionStatus::Running
            | AgentExecutionStatus::Completed
            | AgentExecutionStatus::Unknown(_),
        )
        | None => false,
    };
    !row.message.is_waiting && !is_unanswered
}

/// Returns the beginning of a message, on one line.
fn title(text: &str) -> String {
    text.split_whitespace()
        .flat_map(|word| word.chars().chain([' ']))
        .take(TITLE_CHARS)
        .collect::<String>()
        .trim()
        .into()
}
