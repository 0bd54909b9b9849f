//! The checkpoints of model calls, and the claim before every call (invariant 5, paid once).

use everturn_proto::{
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType},
};
use serde::Serialize;
use sqlx::{FromRow, Row, types::Json as Column};

use super::{
    Connection, budgets,
    dialect::{WRITES_IN_PARTS, list, words},
    missing, runs,
    sql::{
        Statement,
        agent_executions::STATUS_OF_EXECUTION,
        checkpoints::{
            CHECKPOINT, CLAIM_STEP, CheckpointRow, INSERT_REPLY, NOTE_FAILED_CALL, NOTE_RESPONSE,
            RELEASE_STEP,
        },
    },
    statement::Statement as _,
    statements::tools::UsedCallIds,
};
use crate::{
    api::{
        BackgroundResponse, ChainPosition, ClaimedCall, CompletedStep, FailedCall, OfStep, Result,
        StepClaim, StepKey, WorkerId,
    },
    columns::now,
    error::{Missing, StoreError},
};

/// A claim of a step.
pub(super) struct Claimed {
    pub(super) claim: StepClaim,
    /// The generation of the new claim, if an earlier call with a reservation was cut; otherwise `None`.
    pub(super) cut_before: Option<u32>,
}

impl From<StepClaim> for Claimed {
    fn from(claim: StepClaim) -> Self {
        Self {
            claim,
            cut_before: None,
        }
    }
}

#[derive(FromRow)]
struct ClaimRow {
    #[sqlx(try_from = "i64")]
    generation: u32,
    #[sqlx(try_from = "i64")]
    step_calls: u32,
    is_ahead: bool,
    log_id: String,
    tenant_id: String,
    has_budget: bool,
    was_cut: bool,
    background_response: Option<Column<OfStep<BackgroundResponse>>>,
    model_chain: Option<Column<OfStep<ChainPosition>>>,
}

impl ClaimRow {
    /// Returns the claim of a step. A call whose response still runs at the provider was not cut, so its reservation
    /// stays.
    fn of(self, step: u32) -> Claimed {
        let row = self;
        let background = row.background_response.and_then(|stored| stored.0.of(step));
        let chain = row.model_chain.and_then(|stored| stored.0.of(step));
        let is_cut = row.was_cut && background.is_none();
        Claimed {
            cut_before: is_cut.then_some(row.generation),
            claim: StepClaim::Call(ClaimedCall {
                log_id: row.log_id.into(),
                tenant_id: row.tenant_id,
                generation: row.generation,
                calls: row.step_calls,
                is_ahead: row.is_ahead,
                has_budget: row.has_budget,
                background,
                chain,
            }),
        }
    }
}

/// Claims the call of a step with one statement. If the claim fails, further statements find the reason.
pub(super) async fn claim_step(
    connection: &mut Connection,
    step: &StepKey,
    worker: Option<&WorkerId>,
) -> Result<Claimed> {
    // `fetch_all` reads every row, as does every other writing statement that returns rows. SQLite ends a statement,
    // and with it the transaction, only after the last row was read.
    let mut claimed: Vec<ClaimRow> = sqlx::query_as(CLAIM_STEP)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .bind(i64::from(step.step))
        .bind(AgentExecutionStatus::Running.as_str())
        .bind(CheckpointType::LlmComplete.as_str())
        .bind(runs::newest(step.epoch))
        .bind(worker.map(WorkerId::as_str).unwrap_or_default())
        .fetch_all(&mut *connection)
        .await?;
    if let Some(row) = claimed.pop() {
        return Ok(row.of(step.step));
    }
    // The claim failed: the call was made before, the agent execution is not running, or the run was replaced.
    let status: Option<String> = sqlx::query_scalar(STATUS_OF_EXECUTION)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .fetch_optional(&mut *connection)
        .await?;
    let id = &step.agent_execution_id;
    let status = status.ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))?;
    if let Some(state) = load_checkpoint(connection, step, CheckpointType::LlmComplete).await? {
        return Ok(StepClaim::Stored(state).into());
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

/// Stores the response that runs for a call, unless the call is obsolete by now. Returns whether the response was
/// stored.
pub(super) async fn note_response(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    response: &BackgroundResponse,
) -> Result<bool> {
    let stored = OfStep {
        step: step.step,
        value: response,
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

/// Stores a step's position in the model chain after a failed call, unless the call is obsolete by now. Returns whether
/// the position was stored.
pub(super) async fn note_failed_call(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    failed: &FailedCall,
) -> Result<bool> {
    let stored = OfStep {
        step: step.step,
        value: &failed.chain,
    };
    let noted = sqlx::query(NOTE_FAILED_CALL)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .bind(i64::from(generation))
        .bind(AgentExecutionStatus::Running.as_str())
        .bind(runs::newest(step.epoch))
        .bind(Column(stored))
        .bind(i64::from(failed.calls))
        .bind(failed.fallback.is_some())
        .execute(connection)
        .await?;
    Ok(noted.rows_affected() == 1)
}

/// Stores the reply of a step with one statement. If the statement stores no row, further statements find the reason.
pub(super) async fn complete_step(
    connection: &mut Connection,
    step: &StepKey,
    state: LlmCompleteState,
) -> Result<CompletedStep> {
    let calls = state.tool_calls.iter();
    let call_ids: Vec<_> = calls.map(|call| call.call_id.clone()).collect();
    if insert_reply(connection, step, &state, &call_ids).await? {
        return Ok(CompletedStep::Stored(state));
    }
    if let Some(stored) = load_checkpoint(connection, step, CheckpointType::LlmComplete).await? {
        return Ok(CompletedStep::Stored(stored));
    }
    let used = UsedCallIds {
        conversation_id: &step.conversation_id,
        call_ids: &call_ids,
    };
    let used: Vec<String> = used.query_scalar()?.fetch_all(connection).await?;
    if used.is_empty() {
        let neither = "a checkpoint was neither inserted nor found";
        return Err(StoreError::Corrupt(neither.into()));
    }
    Ok(CompletedStep::CallIdsUsed(used))
}

/// Inserts the reply of a step, settles the call's reservation, and adds the call to the tenant's sums. Returns false
/// when the step has a reply already, or when the conversation has used one of the call ids.
async fn insert_reply(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
    call_ids: &[String],
) -> Result<bool> {
    let row = of_call(step, CheckpointType::LlmComplete, state);
    let insert = row
        .bound(words(INSERT_REPLY))
        .bind(i64::from(state.cached_tokens))
        .bind(i64::from(state.cache_write_tokens))
        .bind(i64::from(state.reasoning_tokens))
        .bind(budgets::nano_of(state))
        .bind(list(call_ids));
    if !WRITES_IN_PARTS {
        let is_new = has_inserted(&mut *connection, step, insert).await?;
        if is_new {
            budgets::settle(connection, step, state).await?;
        }
        return Ok(is_new);
    }
    let id = &step.agent_execution_id;
    let inserted = insert
        .bind(budgets::day(now()))
        .bind(budgets::model_name(&state.provider, &state.model))
        .bind(budgets::slot(id))
        .bind(budgets::tokens_of(state))
        .bind(budgets::nano_of(state).unwrap_or_default())
        .fetch_one(connection)
        .await
        .map_err(missing(Missing::AgentExecution, id))?;
    let inserted: i64 = inserted.try_get(0)?;
    Ok(inserted == 1)
}

/// Stores the text so far of a stopped call. The newest generation wins.
pub(super) async fn save_partial(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
) -> Result<()> {
    let row = of_call(step, CheckpointType::LlmPartial, state);
    insert_or_replace(connection, &row).await
}

/// Inserts a checkpoint, or replaces an existing checkpoint of an equal or older generation.
pub(super) async fn insert_or_replace<S: Serialize>(
    connection: &mut Connection,
    row: &CheckpointRow<'_, S>,
) -> Result<()> {
    if !has_inserted(&mut *connection, row.step, row.insert()).await? {
        row.replace().execute(connection).await?;
    }
    Ok(())
}

/// Runs a statement that inserts a checkpoint of a step, and returns whether a row was inserted.
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
