//! Saves one batch: locks the conversation, looks for a stored batch, appends (invariants 2, one order, and 3,
//! idempotent saves).

use everturn_proto::{
    turn::{SaveRequest, SaveResult, StillWaiting},
    words::AgentExecutionStatus,
};

use super::{
    Connection,
    append::{Appended, append, find_state},
    approvals, audit,
    lock::{LockedConversation, lock_known},
    runs,
    statement::Statement as _,
    statements::outside::AskedTools,
};
use crate::{
    api::{Result, Saved, StepKey},
    batch::{self, BatchRequest, Save},
    columns::now,
    error::{Missing, StoreError},
    rows::tools::AskedRow,
};

/// Saves a batch. `keep_days` is the retention of the audit entry of an answer through the engine.
pub(super) async fn save(
    connection: &mut Connection,
    request: &SaveRequest,
    keep_days: u32,
) -> Result<Saved> {
    let mut request = BatchRequest::try_from(request)?;
    let StepKey {
        conversation_id,
        message_id,
        agent_execution_id,
        ..
    } = &request.step;
    let conversation = lock_known(connection, conversation_id).await?;
    runs::check(&conversation, conversation_id, request.step.epoch)?;
    let LockedConversation {
        log_id,
        tenant_id,
        last_sequence,
        ..
    } = conversation;
    let state = find_state(connection, &request)
        .await?
        .ok_or_else(|| StoreError::not_found(Missing::AgentExecution, agent_execution_id))?;
    if state.message_id != *message_id {
        // The message is part of the batch's key. With a wrong message, the batch could be stored twice.
        return Err(StoreError::Conflict(format!(
            "agent execution `{agent_execution_id}` is not of message `{message_id}`"
        )));
    }
    let is_running = state.status == AgentExecutionStatus::Running;
    let mut as_stored = SaveResult {
        status: state.status.into(),
        last_sequence,
        ..SaveResult::default()
    };
    if state.stored_sequence.is_some() {
        note_stored(connection, &request, &mut as_stored).await?;
        return Ok(Saved {
            log_id,
            result: as_stored,
            sealed: batch::sealed(&request),
            ended: None,
        });
    }
    if is_running {
        as_stored.approval_refused = refused(connection, &mut request).await?;
    }
    if !is_running || as_stored.approval_refused.is_some() {
        return Ok(Saved {
            log_id,
            result: as_stored,
            sealed: Vec::new(),
            ended: None,
        });
    }
    let Appended {
        result,
        sealed,
        ended,
    } = append(connection, &request, last_sequence, state.steps).await?;
    note_through_engine(connection, &tenant_id, &request, keep_days).await?;
    Ok(Saved {
        log_id,
        result,
        sealed,
        ended,
    })
}

/// Writes the audit entry of an answer through the engine. The entry comes last, because other appenders wait for the
/// transaction.
async fn note_through_engine(
    connection: &mut Connection,
    tenant_id: &str,
    request: &BatchRequest,
    keep_days: u32,
) -> Result<()> {
    match &request.save {
        Save::Approval(answer) if answer.is_through_engine => {
            let id = &request.step.conversation_id;
            let entry = approvals::audit_entry(tenant_id, id, answer, keep_days);
            audit::append(connection, &entry).await
        }
        _ => Ok(()),
    }
}

/// Returns why an approval's answer is refused. Returns `None` for an accepted answer, which now names the person, and
/// for every other kind of batch.
async fn refused(
    connection: &mut Connection,
    request: &mut BatchRequest,
) -> Result<Option<String>> {
    let id = &request.step.conversation_id;
    match &mut request.save {
        Save::Approval(answer) => {
            let refused = approvals::authenticate(connection, id, answer).await?;
            Ok(refused.map(String::from))
        }
        _ => Ok(None),
    }
}

/// Adds the facts of the stored batch that the run decides on.
async fn note_stored(
    connection: &mut Connection,
    request: &BatchRequest,
    result: &mut SaveResult,
) -> Result<()> {
    match &request.save {
        Save::Thought => note_answers(connection, &request.step, result).await?,
        Save::Approval(answer) => {
            let (id, call) = (&request.step.conversation_id, &answer.execution_id);
            result.approval_saved = approvals::stored(connection, id, call).await?;
        }
        _ => {}
    }
    Ok(())
}

/// Adds the answers and results that a reset or resumed run need not wait for when saving a thought again.
async fn note_answers(
    connection: &mut Connection,
    step: &StepKey,
    result: &mut SaveResult,
) -> Result<()> {
    let asked = AskedTools {
        agent_execution_id: &step.agent_execution_id,
        step: i64::from(step.step),
        now: now(),
    };
    let rows: Vec<AskedRow> = asked.query_as()?.fetch_all(connection).await?;
    for row in rows {
        let execution_id = &row.execution_id;
        if let Some(left_ms) = row.left_ms() {
            result.still_waiting.push(StillWaiting {
                execution_id: execution_id.clone(),
                left_ms,
                input_hash: row.awaited_hash().to_owned(),
            });
        }
        if row.is_answered() {
            result.approvals_answered.push(execution_id.clone());
        }
        if row.has_result() {
            result.results_stored.push(execution_id.clone());
        }
    }
    Ok(())
}
