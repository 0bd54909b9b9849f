//! The begin of a turn: the message is taken, the agent pinned, the execution inserted, in one transaction.

use chrono::{DateTime, Utc};
use everturn_proto::{
    ids,
    turn::{AgentDefinition, SaveRequest, SaveSteer, save_request},
    words::execution_status,
};
use sqlx::types::Json as Column;

use super::{
    Connection,
    dialect::sql_error,
    lock::lock_conversation,
    snapshot::load_message,
    write::{insert_conversation, write_batch},
};
use crate::{
    api::{Access, BeginTurn, BegunTurn, NewConversation, Result},
    batch::{self, Snapshot},
    error::StoreError,
    rows::{BegunRow, UserMessageRow, narrow, now},
    sql,
};

/// Length of a title made from a message.
const TITLE_CHARS: usize = 80;

pub(super) async fn begin_turn(connection: &mut Connection, begin: BeginTurn) -> Result<BegunTurn> {
    let last_sequence = lock_or_create(connection, &begin).await?;
    if let Some(begun) = stored(connection, &begin).await? {
        return Ok(begun);
    }
    let now = now();
    let agent_hash = ids::definition_hash(&encode(&begin.agent)?);

    let message = load_message(connection, &begin.conversation_id, &begin.message_id).await?;
    if let Some(status) = message.as_ref().and_then(answered_elsewhere) {
        return Ok(BegunTurn { status: status.to_owned(), agent: begin.agent, agent_hash, last_sequence });
    }
    sqlx::query(sql::INSERT_DEFINITION)
        .bind(&agent_hash)
        .bind(Column(&begin.agent))
        .execute(&mut *connection)
        .await
        .map_err(sql_error)?;

    // Taking the first message of a turn is the same batch as taking one that steers it.
    let request = take_request(&begin);
    let text = message.as_ref().map_or_else(|| begin.content.clone(), |message| message.content.clone());
    let snapshot =
        Snapshot { last_sequence, message: message.as_ref().map(UserMessageRow::waiting), ..Snapshot::default() };
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
        return Err(StoreError::not_found("conversation", &begin.conversation_id));
    }
    Err(StoreError::Unavailable("the conversation was removed as its turn began".into()))
}

/// The turn as it was begun before.
async fn stored(connection: &mut Connection, begin: &BeginTurn) -> Result<Option<BegunTurn>> {
    let row: Option<BegunRow> = sqlx::query_as(sql::BEGUN_TURN)
        .bind(&begin.agent_execution_id)
        .bind(&begin.conversation_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    row.map(|row| {
        Ok(BegunTurn {
            status: row.status,
            agent: row.definition.0,
            agent_hash: row.agent_hash,
            last_sequence: narrow(row.last_sequence)?,
        })
    })
    .transpose()
}

/// A message that another turn took (it steered that turn) and that is answered there, or is about to be. One
/// whose turn was cancelled or failed was accepted and never answered: it gets a turn of its own, and its event,
/// already stored, is not repeated.
fn answered_elsewhere(message: &UserMessageRow) -> Option<&'static str> {
    let taker = message.taker_status.as_deref();
    let unanswered = matches!(taker, Some(execution_status::CANCELLED | execution_status::FAILED));
    (!message.waiting().is_waiting && !unanswered).then_some(execution_status::COMPLETED)
}

fn take_request(begin: &BeginTurn) -> SaveRequest {
    let (message_id, content) = (begin.message_id.clone(), begin.content.clone());
    SaveRequest {
        conversation_id: begin.conversation_id.clone(),
        message_id: begin.message_id.clone(),
        agent_execution_id: begin.agent_execution_id.clone(),
        step: 0,
        batch: Some(save_request::Batch::Steer(SaveSteer { message_id, content })),
    }
}

/// The definition as the JSON that is hashed.
fn encode(agent: &AgentDefinition) -> Result<String> {
    serde_json::to_string(agent).map_err(|error| StoreError::Conflict(format!("the agent has no JSON form: {error}")))
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
