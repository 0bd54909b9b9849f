//! The checkpoints of model calls, and the claim before each (invariant 5, paid once).

use everturn_proto::{
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType},
};
use serde::Serialize;
use sqlx::types::Json as Column;

use super::{
    Connection,
    dialect::{list, words},
    missing, runs,
    sql::{
        Statement,
        agent_executions::STATUS_OF_EXECUTION,
        checkpoints::{CHECKPOINT, CLAIM_STEP, CheckpointRow, NOTE_RESPONSE, RELEASE_STEP},
        tools::USED_CALL_IDS,
    },
};
use crate::{
    api::{
        BackgroundResponse, CompletedStep, ResponseOfStep, Result, StepClaim, StepKey, WorkerId,
    },
    columns::{narrow, now},
    error::{Missing, StoreError},
};

type StoredResponse = Column<ResponseOfStep<BackgroundResponse>>;

/// Claims the call of a step with one statement. When that claims nothing, further statements find out why.
pub(super) async fn claim_step(
    connection: &mut Connection,
    step: &StepKey,
    worker: Option<&WorkerId>,
) -> Result<StepClaim> {
    // All rows are read, here and wherever a statement writes and returns rows: SQLite ends a statement, and with it
    // its transaction, only when it was read to its end.
    let mut claimed: Vec<(i64, i64, bool, String, Option<StoredResponse>)> =
        sqlx::query_as(CLAIM_STEP)
            .bind(&step.agent_execution_id)
            .bind(&step.conversation_id)
            .bind(i64::from(step.step))
            .bind(AgentExecutionStatus::Running.as_str())
            .bind(CheckpointType::LlmComplete.as_str())
            .bind(runs::newest(step.epoch))
            .bind(worker.map(WorkerId::as_str).unwrap_or_default())
            .fetch_all(&mut *connection)
            .await?;
    if let Some((generation, calls, is_ahead, log_id, response)) = claimed.pop() {
        let of_this_step = response.filter(|stored| stored.0.step == step.step);
        return Ok(StepClaim::Call {
            log_id: log_id.into(),
            generation: narrow(generation)?,
            calls: narrow(calls)?,
            is_ahead,
            background: of_this_step.map(|stored| stored.0.response),
        });
    }
    // Nothing was claimed: the call was made before, the agent execution is not running, or the run was replaced.
    let status: Option<String> = sqlx::query_scalar(STATUS_OF_EXECUTION)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .fetch_optional(&mut *connection)
        .await?;
    let id = &step.agent_execution_id;
    let status = status.ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))?;
    if let Some(state) = load_checkpoint(connection, step, CheckpointType::LlmComplete).await? {
        return Ok(StepClaim::Stored(state));
    }
    runs::check_unlocked(connection, &step.conversation_id, step.epoch).await?;
    let running = AgentExecutionStatus::Running;
    Err(StoreError::Conflict(format!(
        "agent execution `{id}` is {status}, not {running}"
    )))
}

/// Gives back the claim of a call that was not made.
pub(super) async fn release_step(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
) -> Result<()> {
    sqlx::query(RELEASE_STEP)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .bind(i64::from(generation))
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the response that runs for a call, unless the call is useless by now. Returns whether it did.
pub(super) async fn note_response(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    response: &BackgroundResponse,
) -> Result<bool> {
    let stored = ResponseOfStep {
        step: step.step,
        response,
    };
    let noted = sqlx::query(NOTE_RESPONSE)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .bind(i64::from(generation))
        .bind(AgentExecutionStatus::Running.as_str())
        .bind(runs::newest(step.epoch))
        .bind(Column(stored))
        .execute(connection)
        .await?;
    Ok(noted.rows_affected() == 1)
}

/// Stores the reply of a step with one statement. When that stores nothing, further statements find out why.
pub(super) async fn complete_step(
    connection: &mut Connection,
    step: &StepKey,
    state: LlmCompleteState,
) -> Result<CompletedStep> {
    let calls = state.tool_calls.iter();
    let call_ids: Vec<_> = calls.map(|call| call.call_id.clone()).collect();
    let row = of_call(step, CheckpointType::LlmComplete, &state);
    if has_inserted(connection, step, row.insert_unless_used(&call_ids)).await? {
        return Ok(CompletedStep::Stored(state));
    }
    if let Some(stored) = load_checkpoint(connection, step, CheckpointType::LlmComplete).await? {
        return Ok(CompletedStep::Stored(stored));
    }
    let used: Vec<String> = sqlx::query_scalar(words(USED_CALL_IDS))
        .bind(&step.conversation_id)
        .bind(list(&call_ids))
        .fetch_all(connection)
        .await?;
    if used.is_empty() {
        let neither = "a checkpoint was neither inserted nor found";
        return Err(StoreError::Corrupt(neither.into()));
    }
    Ok(CompletedStep::CallIdsUsed(used))
}

/// Stores the text so far of a call that was stopped. The newest generation wins.
pub(super) async fn save_partial(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
) -> Result<()> {
    let row = of_call(step, CheckpointType::LlmPartial, state);
    insert_or_replace(connection, &row).await
}

/// Inserts a checkpoint, or replaces the one that is there if that is not of a newer generation.
pub(super) async fn insert_or_replace<S: Serialize>(
    connection: &mut Connection,
    row: &CheckpointRow<'_, S>,
) -> Result<()> {
    if !has_inserted(&mut *connection, row.step, row.insert()).await? {
        row.replace().execute(connection).await?;
    }
    Ok(())
}

/// Runs a statement that inserts a checkpoint of this step, and returns whether it did.
async fn has_inserted(
    connection: &mut Connection,
    step: &StepKey,
    insert: Statement,
) -> Result<bool> {
    let id = &step.agent_execution_id;
    let inserted = insert.execute(connection).await;
    let inserted = inserted.map_err(missing(Missing::AgentExecution, id))?;
    Ok(inserted.rows_affected() == 1)
}

/// Reads the state of a step's LLM call.
pub(super) async fn load_checkpoint(
    connection: &mut Connection,
    step: &StepKey,
    checkpoint_type: CheckpointType,
) -> Result<Option<LlmCompleteState>> {
    let state: Option<Column<LlmCompleteState>> = sqlx::query_scalar(CHECKPOINT)
        .bind(&step.agent_execution_id)
        .bind(i64::from(step.step))
        .bind(checkpoint_type.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(state.map(|state| state.0))
}

/// Returns the row of an LLM call's checkpoint.
fn of_call<'a>(
    step: &'a StepKey,
    checkpoint_type: CheckpointType,
    state: &'a LlmCompleteState,
) -> CheckpointRow<'a, LlmCompleteState> {
    CheckpointRow {
        step,
        checkpoint_type,
        execution_id: None,
        generation: state.generation,
        input_tokens: state.input_tokens,
        output_tokens: state.output_tokens,
        now: now(),
        state,
    }
}
