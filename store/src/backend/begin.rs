//! The begin of a turn: the message is taken, the agent pinned, the execution inserted, in one transaction.

use std::time::Duration;

use chrono::{DateTime, Utc};
use everturn_proto::{
    ids,
    turn::{AgentDefinition, SaveEnd, SaveRequest, SaveSteer, save_request},
    words::{execution_status, failure},
};
use sqlx::types::Json as Column;

use super::{
    Connection,
    dialect::sql_error,
    lock::lock_conversation,
    save,
    snapshot::load_message,
    write::{insert_conversation, write_batch},
};
use crate::{
    api::{Access, BeginTurn, BegunTurn, NewConversation, Result, Saved},
    batch::{self, Snapshot},
    error::StoreError,
    rows::{BegunRow, UserMessageRow, narrow, now},
    sql,
};

/// Length of a title made from a message.
const TITLE_CHARS: usize = 80;

pub(super) async fn begin_turn(connection: &mut Connection, begin: BeginTurn) -> Result<BegunTurn> {
    let mut last_sequence = lock_or_create(connection, &begin).await?;
    let mut begun = begun_turns(connection, &begin).await?;
    if let Some(own) = begun
        .iter()
        .position(|row| row.id == begin.agent_execution_id)
    {
        return Ok(begun.swap_remove(own).begun(last_sequence));
    }
    let now = now();
    let agent_hash = ids::definition_hash(&encode(&begin.agent)?);

    let message = load_message(connection, &begin.conversation_id, &begin.message_id).await?;
    if let Some(status) = message.as_ref().and_then(answered_elsewhere) {
        let (status, sealed, age) = (status.to_owned(), Vec::new(), Duration::ZERO);
        return Ok(BegunTurn {
            status,
            agent: begin.agent,
            agent_hash,
            last_sequence,
            sealed,
            age,
        });
    }
    let mut sealed = Vec::new();
    for lost in &begun {
        let ended = end_lost(connection, &begin.conversation_id, lost, last_sequence).await?;
        last_sequence = ended.result.last_sequence;
        sealed.extend(ended.sealed);
    }
    insert_definition(connection, &agent_hash, &begin.agent).await?;

    // Taking the first message of a turn is the same batch as taking one that steers it.
    let request = take_request(&begin);
    let text = message
        .as_ref()
        .map_or_else(|| begin.content.clone(), |message| message.content.clone());
    let snapshot = Snapshot {
        last_sequence,
        message: message.as_ref().map(UserMessageRow::waiting),
        ..Snapshot::default()
    };
    let batch = batch::build(&request, &snapshot)?;
    write_batch(connection, &request, &batch, now).await?;
    insert_execution(connection, &begin, &agent_hash, now).await?;
    sqlx::query(sql::SET_EMPTY_TITLE)
        .bind(&begin.conversation_id)
        .bind(title(&text))
        .execute(&mut *connection)
        .await
        .map_err(sql_error)?;
    Ok(BegunTurn {
        status: execution_status::RUNNING.into(),
        agent: begin.agent,
        agent_hash,
        last_sequence: batch.last_sequence,
        sealed,
        age: Duration::ZERO,
    })
}

/// Locks the conversation, creating it when it is unknown; gives its largest sequence number. Of several who create
/// it at once the others wait for the first, and then for its lock.
///
/// One that was deleted is not created again by a worker that was about to begin its turn: whoever finds no row to lock
/// sees that it was deleted in the statement after, for both were committed at once.
async fn lock_or_create(connection: &mut Connection, begin: &BeginTurn) -> Result<u32> {
    if let Some(last_sequence) = lock_conversation(connection, &begin.conversation_id).await? {
        return Ok(last_sequence);
    }
    let new = NewConversation {
        id: begin.conversation_id.clone(),
        access: Access::tenant(&begin.tenant_id),
        agent: begin.agent.name.clone(),
        title: String::new(),
    };
    insert_conversation(connection, sql::INSERT_CONVERSATION_UNLESS_DELETED, &new).await?;
    if let Some(last_sequence) = lock_conversation(connection, &begin.conversation_id).await? {
        return Ok(last_sequence);
    }
    let deleted: i64 = sqlx::query_scalar(sql::IS_DELETED)
        .bind(&begin.conversation_id)
        .fetch_one(connection)
        .await
        .map_err(sql_error)?;
    if deleted > 0 {
        return Err(StoreError::not_found(
            "conversation",
            &begin.conversation_id,
        ));
    }
    Err(StoreError::Unavailable(
        "the conversation was removed as its turn began".into(),
    ))
}

/// The turn as it was begun before, and the turns that say they run.
async fn begun_turns(connection: &mut Connection, begin: &BeginTurn) -> Result<Vec<BegunRow>> {
    sqlx::query_as(sql::BEGUN_TURNS)
        .bind(&begin.agent_execution_id)
        .bind(&begin.conversation_id)
        .fetch_all(connection)
        .await
        .map_err(sql_error)
}

/// Ends a turn whose workflow is gone: what is open is closed, and the text so far kept, as at every end.
async fn end_lost(
    connection: &mut Connection,
    conversation_id: &str,
    lost: &BegunRow,
    last_sequence: u32,
) -> Result<Saved> {
    let end = SaveEnd {
        status: execution_status::FAILED.into(),
        code: Some(failure::TURN_LOST.into()),
        message: Some(
            "The turn was stopped from outside, and then a newer message began its turn. Send this one again if it \
             still needs an answer."
                .into(),
        ),
    };
    let steps = narrow(lost.steps)?;
    let request = SaveRequest {
        conversation_id: conversation_id.to_owned(),
        message_id: lost.message_id.clone(),
        agent_execution_id: lost.id.clone(),
        // The step behind those that were saved is the one that may have left a text.
        step: steps,
        batch: Some(save_request::Batch::End(end)),
    };
    save::append(connection, &request, last_sequence, steps).await
}

/// A message that another turn took (it steered that turn) and that is answered there, or is about to be. One
/// whose turn was cancelled or failed was accepted and never answered: it gets a turn of its own, and its event,
/// already stored, is not repeated.
fn answered_elsewhere(message: &UserMessageRow) -> Option<&'static str> {
    let taker = message.taker_status.as_deref();
    let unanswered = matches!(
        taker,
        Some(execution_status::CANCELLED | execution_status::FAILED)
    );
    (!message.waiting().is_waiting && !unanswered).then_some(execution_status::COMPLETED)
}

fn take_request(begin: &BeginTurn) -> SaveRequest {
    let (message_id, content) = (begin.message_id.clone(), begin.content.clone());
    SaveRequest {
        conversation_id: begin.conversation_id.clone(),
        message_id: begin.message_id.clone(),
        agent_execution_id: begin.agent_execution_id.clone(),
        step: 0,
        batch: Some(save_request::Batch::Steer(SaveSteer {
            message_id,
            content,
        })),
    }
}

/// Stores a definition, once.
pub(super) async fn insert_definition(
    connection: &mut Connection,
    agent_hash: &str,
    agent: &AgentDefinition,
) -> Result<()> {
    sqlx::query(sql::INSERT_DEFINITION)
        .bind(agent_hash)
        .bind(Column(agent))
        .execute(connection)
        .await
        .map_err(sql_error)?;
    Ok(())
}

/// The definition as the JSON that is hashed.
pub(super) fn encode(agent: &AgentDefinition) -> Result<String> {
    serde_json::to_string(agent)
        .map_err(|error| StoreError::Conflict(format!("the agent has no JSON form: {error}")))
}

async fn insert_execution(
    connection: &mut Connection,
    begin: &BeginTurn,
    agent_hash: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query(sql::INSERT_EXECUTION)
        .bind(&begin.agent_execution_id)
        .bind(&begin.conversation_id)
        .bind(&begin.message_id)
        .bind(&begin.agent.name)
        .bind(agent_hash)
        .bind(now)
        .execute(connection)
        .await
        .map_err(sql_error)?;
    Ok(())
}

/// The beginning of a message on one line.
fn title(text: &str) -> String {
    text.split_whitespace()
        .flat_map(|word| word.chars().chain([' ']))
        .take(TITLE_CHARS)
        .collect::<String>()
        .trim()
        .into()
}
