//! The save of one batch: lock, look whether it is stored, build, write (invariants 2 and 3).

use everturn_proto::{
    turn::{SaveRequest, SaveResult},
    words::execution_status,
};
use sqlx::SqliteConnection;

use super::{
    error::sql_error,
    snapshot,
    write::{advance_execution, write_batch},
};
use crate::{
    api::{Result, Saved},
    batch,
    error::StoreError,
    rows::{SaveLockRow, narrow, now},
    sql,
};

pub(super) async fn save(connection: &mut SqliteConnection, request: &SaveRequest) -> Result<Saved> {
    let lock: Option<SaveLockRow> = sqlx::query_as(sql::SAVE_LOCK)
        .bind(&request.agent_execution_id)
        .bind(&request.conversation_id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(sql_error)?;
    let lock = lock.ok_or_else(|| StoreError::not_found("agent execution", &request.agent_execution_id))?;
    if lock.message_id != request.message_id {
        // The message is part of the batch's key: another one would let the same batch be stored twice.
        let (execution, message) = (&request.agent_execution_id, &request.message_id);
        return Err(StoreError::Conflict(format!("agent execution `{execution}` is not of message `{message}`")));
    }
    let key = batch::key(request)?;
    let last_sequence = narrow(lock.last_sequence)?;
    let as_stored = SaveResult { status: lock.status, last_sequence };
    if is_stored(connection, &request.conversation_id, &key).await? {
        return Ok(Saved { result: as_stored, sealed: batch::sealed(request) });
    }
    if as_stored.status != execution_status::RUNNING {
        return Ok(Saved { result: as_stored, sealed: Vec::new() });
    }
    let mut snapshot = snapshot::load(connection, request).await?;
    snapshot.last_sequence = last_sequence;
    snapshot.steps = narrow(lock.steps)?;
    let batch = batch::build(request, &snapshot)?;
    if batch.events.is_empty() {
        return Ok(Saved { result: as_stored, sealed: Vec::new() });
    }
    let now = now();
    write_batch(connection, request, &batch, now).await?;
    advance_execution(connection, request, &batch, now).await?;
    let status = batch.end.map_or(as_stored.status, |end| end.status);
    let result = SaveResult { status, last_sequence: batch.last_sequence };
    Ok(Saved { result, sealed: batch::sealed(request) })
}

/// A batch is stored when its first event is.
async fn is_stored(connection: &mut SqliteConnection, conversation_id: &str, key: &str) -> Result<bool> {
    let found: Option<i64> = sqlx::query_scalar(sql::EVENT_BY_ID)
        .bind(batch::event_id(conversation_id, key, 0))
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    Ok(found.is_some())
}
