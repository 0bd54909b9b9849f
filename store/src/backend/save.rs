//! The save of one batch: lock, look whether it is stored, build, write (invariants 2 and 3).

use everturn_proto::{
    turn::{SaveRequest, SaveResult, StillWaiting, save_request},
    words::execution_status,
};

use super::{
    Connection, delegate,
    dialect::sql_error,
    lock::lock_conversation,
    snapshot,
    write::{advance_execution, write_batch},
};
use crate::{
    api::{Result, Saved},
    batch::{self, Snapshot},
    error::StoreError,
    rows::{AnsweredRow, SaveStateRow, narrow, now},
    sql,
};

pub(super) async fn save(connection: &mut Connection, request: &SaveRequest) -> Result<Saved> {
    let last_sequence = lock_conversation(connection, &request.conversation_id).await?;
    let last_sequence = last_sequence
        .ok_or_else(|| StoreError::not_found("conversation", &request.conversation_id))?;
    let key = batch::key(request)?;
    let state = state(connection, request, &key).await?;
    if state.message_id != request.message_id {
        // The message is part of the batch's key: another one would let the same batch be stored twice.
        let (execution, message) = (&request.agent_execution_id, &request.message_id);
        return Err(StoreError::Conflict(format!(
            "agent execution `{execution}` is not of message `{message}`"
        )));
    }
    let mut as_stored = SaveResult {
        status: state.status,
        last_sequence,
        ..SaveResult::default()
    };
    if state.stored_sequence.is_some() {
        if matches!(request.batch, Some(save_request::Batch::Thought(_))) {
            note_answers(connection, request, &mut as_stored).await?;
        }
        return Ok(Saved {
            result: as_stored,
            sealed: batch::sealed(request),
        });
    }
    if as_stored.status != execution_status::RUNNING {
        return Ok(Saved {
            result: as_stored,
            sealed: Vec::new(),
        });
    }
    append(connection, request, last_sequence, narrow(state.steps)?).await
}

/// Appends a batch that is not stored to an execution that runs, under the conversation's lock. `steps`: those the
/// execution has saved.
pub(super) async fn append(
    connection: &mut Connection,
    request: &SaveRequest,
    last_sequence: u32,
    steps: u32,
) -> Result<Saved> {
    let mut loaded = snapshot::load(connection, request).await?;
    let lost = delegate::end_lost(connection, request, &loaded.tools, last_sequence).await?;
    if lost.last_sequence != last_sequence {
        // The ends of sub-agents ended the calls that started them.
        loaded = snapshot::load(connection, request).await?;
    }
    let (last_sequence, mut sealed) = (lost.last_sequence, lost.sealed);
    let snapshot = Snapshot {
        last_sequence,
        steps,
        now: now(),
        ..loaded
    };
    let batch = batch::build(request, &snapshot)?;
    let result = SaveResult {
        status: execution_status::RUNNING.into(),
        last_sequence,
        ..SaveResult::default()
    };
    if batch.events.is_empty() {
        return Ok(Saved { result, sealed });
    }
    let now = snapshot.now;
    write_batch(connection, request, &batch, now).await?;
    if batch.end.is_some() || batch.steps != snapshot.steps {
        advance_execution(connection, request, &batch, now).await?;
    }
    let status = batch.end.map_or(result.status, |end| end.status);
    let result = SaveResult {
        status,
        last_sequence: batch.last_sequence,
        ..SaveResult::default()
    };
    sealed.extend(batch::sealed(request));
    Ok(Saved { result, sealed })
}

/// What a run that saves a thought again (it was reset or resumed) need not wait for.
async fn note_answers(
    connection: &mut Connection,
    request: &SaveRequest,
    result: &mut SaveResult,
) -> Result<()> {
    let rows: Vec<AnsweredRow> = sqlx::query_as(sql::ANSWERED_TOOLS)
        .bind(&request.agent_execution_id)
        .bind(i64::from(request.step))
        .fetch_all(connection)
        .await
        .map_err(sql_error)?;
    let now = now();
    for AnsweredRow {
        execution_id,
        is_answered,
        has_result,
        waits_until,
    } in rows
    {
        if let Some(until) = waits_until {
            let left_ms =
                u32::try_from((until - now).num_milliseconds().max(0)).unwrap_or(u32::MAX);
            result.still_waiting.push(StillWaiting {
                execution_id: execution_id.clone(),
                left_ms,
            });
        }
        if is_answered {
            result.approvals_answered.push(execution_id.clone());
        }
        if has_result {
            result.results_stored.push(execution_id);
        }
    }
    Ok(())
}

/// How the execution stands, and whether the batch is stored: it is when its first event is.
async fn state(
    connection: &mut Connection,
    request: &SaveRequest,
    key: &str,
) -> Result<SaveStateRow> {
    let state = find_state(connection, request, key).await?;
    state.ok_or_else(|| StoreError::not_found("agent execution", &request.agent_execution_id))
}

/// The same; `None` when there is no such execution.
pub(super) async fn find_state(
    connection: &mut Connection,
    request: &SaveRequest,
    key: &str,
) -> Result<Option<SaveStateRow>> {
    sqlx::query_as(sql::SAVE_STATE)
        .bind(&request.agent_execution_id)
        .bind(&request.conversation_id)
        .bind(batch::event_id(&request.conversation_id, key, 0))
        .fetch_optional(connection)
        .await
        .map_err(sql_error)
}
