//! The checkpoints of model calls, and the claim before every call (invariant 5, paid once).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use everturn_proto::{
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType},
};
use serde::Serialize;
use sqlx::{FromRow, types::Json as Column};

use super::{
    Connection, budgets,
    dialect::WRITES_IN_PARTS,
    inbox, missing, runs,
    statement::Statement,
    statements::{
        agent_executions::StatusOfExecution,
        checkpoints::{
            Checkpoint, ClaimStep, InsertCheckpoint, InsertReply, NoteFailedCall, NoteResponse,
            ReleaseStep, ReplaceCheckpoint,
        },
        tools::UsedCallIds,
    },
};
use crate::{
    api::{
        BackgroundResponse, ChainPosition, ClaimedCall, CompletedStep, FailedCall, OfStep, Result,
        StepClaim, StepKey, WorkerId,
    },
    batch::checkpoint_id,
    columns::now,
    error::{Missing, StoreError},
    rows::budgets::model_name,
};

/// A claim of a step.
pub(super) struct Claimed {
    pub(super) claim: StepClaim,
    /// The generation of the new claim, if an earlier call was cut; otherwise `None`.
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each column is a fact of its own"
)]
struct ClaimRow {
    #[sqlx(try_from = "i64")]
    generation: u32,
    #[sqlx(try_from = "i64")]
    step_calls: u32,
    is_ahead: bool,
    log_id: String,
    tenant_id: String,
    owner_id: Option<String>,
    metadata: Column<BTreeMap<String, String>>,
    has_budget: bool,
    has_reserved: bool,
    has_open_call: bool,
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
        // In a turn with a budget, a call without a reservation was not made.
        let is_open = row.has_reserved || (row.has_open_call && !row.has_budget);
        let is_cut = is_open && background.is_none();
        Claimed {
            cut_before: is_cut.then_some(row.generation),
            claim: StepClaim::Call(ClaimedCall {
                log_id: row.log_id.into(),
                tenant_id: row.tenant_id,
                owner_id: row.owner_id,
                metadata: row.metadata.0,
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
    let claim = ClaimStep {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        step: i64::from(step.step),
        status_running: AgentExecutionStatus::Running.as_str(),
        type_llm_complete: CheckpointType::LlmComplete.as_str(),
        run_epoch: runs::newest(step.epoch),
        worker_id: worker.map(WorkerId::as_str).unwrap_or_default(),
    };
    let mut claimed: Vec<ClaimRow> = claim.query_as()?.fetch_all(&mut *connection).await?;
    if let Some(row) = claimed.pop() {
        return Ok(row.of(step.step));
    }
    // The claim failed: the call was made before, the agent execution is not running, the run was replaced, or the turn's
    // message was cancelled.
    let id = &step.agent_execution_id;
    let status = status_of(connection, step).await?;
    if let Some(state) = load_checkpoint(connection, step, CheckpointType::LlmComplete).await? {
        return Ok(StepClaim::Stored(state).into());
    }
    runs::check_unlocked(connection, &step.conversation_id, step.epoch).await?;
    let running = AgentExecutionStatus::Running;
    let (conversation_id, message_id) = (&step.conversation_id, &step.message_id);
    let reason = inbox::cancel_reason(connection, conversation_id, message_id).await?;
    match reason.filter(|_| status == running.as_str()) {
        Some(reason) => Ok(StepClaim::Cancelled(reason).into()),
        None => Err(StoreError::Conflict(format!(
            "agent execution `{id}` is {status}, not {running}"
        ))),
    }
}

/// Gives back the claim of a call that was not made.
pub(super) async fn release_step(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
) -> Result<()> {
    let release = ReleaseStep {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        generation: i64::from(generation),
    };
    release.query()?.execute(connection).await?;
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
    let note = NoteResponse {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        generation: i64::from(generation),
        status_running: AgentExecutionStatus::Running.as_str(),
        run_epoch: runs::newest(step.epoch),
        background_response: stored,
    };
    let noted = note.query()?.execute(connection).await?;
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
    let note = NoteFailedCall {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        generation: i64::from(generation),
        status_running: AgentExecutionStatus::Running.as_str(),
        run_epoch: runs::newest(step.epoch),
        model_chain: stored,
        step_calls: i64::from(failed.calls),
        falls_back: failed.fallback.is_some() || failed.chain.left_response.is_some(),
    };
    let noted = note.query()?.execute(connection).await?;
    Ok(noted.rows_affected() == 1)
}

/// Stores the reply of a step with one statement. If the statement stores no row, further statements find the reason.
pub(super) async fn complete_step(
    connection: &mut Connection,
    step: &StepKey,
    state: LlmCompleteState,
) -> Result<CompletedStep> {
    if [&state.text, &state.reasoning]
        .iter()
        .any(|text| text.contains('\0'))
    {
        // PostgreSQL stores the escape of a NUL in JSON, and later fails to read any key of that JSON.
        return Err(StoreError::Conflict(format!(
            "the reply of step {} of agent execution `{}` has a NUL character; replace the character before the reply is stored",
            step.step, step.agent_execution_id
        )));
    }
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
    let used: Vec<String> = used.query_scalar()?.fetch_all(&mut *connection).await?;
    if used.is_empty() {
        return Err(obsolete(connection, step, state.generation).await?);
    }
    Ok(CompletedStep::CallIdsUsed(used))
}

/// Returns the reason why the store refuses the reply of an obsolete call.
async fn obsolete(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
) -> Result<StoreError> {
    let status = status_of(connection, step).await?;
    runs::check_unlocked(connection, &step.conversation_id, step.epoch).await?;
    let id = &step.agent_execution_id;
    if status == AgentExecutionStatus::Running.as_str() {
        return Ok(StoreError::Superseded {
            agent_execution_id: id.clone(),
            generation,
        });
    }
    Ok(StoreError::Conflict(format!(
        "call {generation} of agent execution `{id}` is obsolete: the agent execution has ended ({status})"
    )))
}

/// Returns the status of the step's agent execution.
async fn status_of(connection: &mut Connection, step: &StepKey) -> Result<String> {
    let id = &step.agent_execution_id;
    let select = StatusOfExecution {
        agent_execution_id: id,
        conversation_id: &step.conversation_id,
    };
    let status: Option<String> = select.query_scalar()?.fetch_optional(connection).await?;
    status.ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))
}

/// Inserts the reply of a step, settles the call's reservation, and adds the call to the tenant's sums. Returns false
/// when the step has a reply already, or when the conversation has used one of the call ids.
async fn insert_reply(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
    call_ids: &[String],
) -> Result<bool> {
    let id = &step.agent_execution_id;
    let nano = budgets::nano_of(state);
    let insert = InsertReply {
        checkpoint_id: &checkpoint_id(id, step.step, &CheckpointType::LlmComplete, None),
        conversation_id: &step.conversation_id,
        message_id: &step.message_id,
        agent_execution_id: id,
        checkpoint_type: CheckpointType::LlmComplete.as_str(),
        execution_id: "",
        step: i64::from(step.step),
        generation: i64::from(state.generation),
        input_tokens: i64::from(state.input_tokens),
        output_tokens: i64::from(state.output_tokens),
        now: now(),
        execution_state: state,
        cached_tokens: i64::from(state.cached_tokens),
        cache_write_tokens: i64::from(state.cache_write_tokens),
        reasoning_tokens: i64::from(state.reasoning_tokens),
        cost_nano: nano,
        estimated_calls: i64::from(state.is_estimated),
        call_ids,
        day: &budgets::day(now()),
        model: &model_name(&state.provider, &state.model),
        slot: budgets::slot(id),
        used_tokens: budgets::tokens_of(state),
        used_nano: nano.unwrap_or_default(),
        status_running: AgentExecutionStatus::Running.as_str(),
        run_epoch: runs::newest(step.epoch),
    };
    if !WRITES_IN_PARTS {
        let is_new = has_inserted(&mut *connection, step, insert).await?;
        if is_new {
            budgets::settle(connection, step, state).await?;
        }
        return Ok(is_new);
    }
    let inserted = insert.query_scalar()?.fetch_one(connection).await;
    let inserted: i64 = inserted.map_err(missing(Missing::AgentExecution, id))?;
    Ok(inserted == 1)
}

/// Stores the text so far of a stopped call. The newest generation wins.
pub(super) async fn save_partial(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
) -> Result<()> {
    let row = CheckpointRow {
        step,
        checkpoint_type: CheckpointType::LlmPartial,
        execution_id: None,
        generation: state.generation,
        input_tokens: state.input_tokens,
        output_tokens: state.output_tokens,
        now: now(),
        state,
    };
    insert_or_replace(connection, &row).await
}

/// A checkpoint to store.
pub(super) struct CheckpointRow<'a, S> {
    pub(super) step: &'a StepKey,
    pub(super) checkpoint_type: CheckpointType,
    /// The tool execution of a tool's checkpoint.
    pub(super) execution_id: Option<&'a str>,
    /// The generation of an LLM call, or the attempt of a tool.
    pub(super) generation: u32,
    pub(super) input_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) now: DateTime<Utc>,
    pub(super) state: &'a S,
}

/// Inserts a checkpoint, or replaces an existing checkpoint of an equal or older generation.
pub(super) async fn insert_or_replace<S: Serialize>(
    connection: &mut Connection,
    row: &CheckpointRow<'_, S>,
) -> Result<()> {
    let step = row.step;
    let id = &step.agent_execution_id;
    let checkpoint_id = checkpoint_id(id, step.step, &row.checkpoint_type, row.execution_id);
    let insert = InsertCheckpoint {
        checkpoint_id: &checkpoint_id,
        conversation_id: &step.conversation_id,
        message_id: &step.message_id,
        agent_execution_id: id,
        checkpoint_type: row.checkpoint_type.as_str(),
        execution_id: row.execution_id.unwrap_or_default(),
        step: i64::from(step.step),
        generation: i64::from(row.generation),
        input_tokens: i64::from(row.input_tokens),
        output_tokens: i64::from(row.output_tokens),
        now: row.now,
        execution_state: row.state,
    };
    if has_inserted(&mut *connection, step, insert).await? {
        return Ok(());
    }
    let replace = ReplaceCheckpoint {
        checkpoint_id: &checkpoint_id,
        generation: i64::from(row.generation),
        input_tokens: i64::from(row.input_tokens),
        output_tokens: i64::from(row.output_tokens),
        now: row.now,
        execution_state: row.state,
    };
    replace.query()?.execute(connection).await?;
    Ok(())
}

/// Runs a statement that inserts a checkpoint of a step, and returns whether a row was inserted.
async fn has_inserted(
    connection: &mut Connection,
    step: &StepKey,
    insert: impl Statement,
) -> Result<bool> {
    let id = &step.agent_execution_id;
    let inserted = insert.query()?.execute(connection).await;
    let inserted = inserted.map_err(missing(Missing::AgentExecution, id))?;
    Ok(inserted.rows_affected() == 1)
}

/// Reads the state of a step's LLM call.
pub(super) async fn load_checkpoint(
    connection: &mut Connection,
    step: &StepKey,
    checkpoint_type: CheckpointType,
) -> Result<Option<LlmCompleteState>> {
    let select = Checkpoint {
        agent_execution_id: &step.agent_execution_id,
        step: i64::from(step.step),
        checkpoint_type: checkpoint_type.as_str(),
    };
    let state: Option<Column<LlmCompleteState>> =
        select.query_scalar()?.fetch_optional(connection).await?;
    Ok(state.map(|state| state.0))
}
