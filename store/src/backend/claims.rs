//! Claims: an LLM call is paid once (invariant 5), a tool is done once (invariant 6).

use everturn_proto::{
    turn::{LlmCompleteState, ToolStartState},
    words::{approval, checkpoint, tool_status},
};
use serde::Serialize;
use sqlx::types::Json as Column;

use super::{Connection, dialect::sql_error, missing};
use crate::{
    api::{Result, StepClaim, StepKey, ToolClaim, ToolEnd, ToolKey, ToolRecord},
    batch::checkpoint_id,
    error::StoreError,
    rows::{ToolSqlRow, narrow, now},
    sql,
};

/// One statement that claims; what it does not claim is then looked at.
pub(super) async fn claim_step(connection: &mut Connection, step: &StepKey) -> Result<StepClaim> {
    // All rows, here and below where a statement writes and returns: SQLite ends a statement, and with it its
    // transaction, when it was read to its end.
    let claimed: Vec<i64> = sqlx::query_scalar(sql::CLAIM_STEP)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .bind(i64::from(step.step))
        .fetch_all(&mut *connection)
        .await
        .map_err(sql_error)?;
    if let [generation] = claimed[..] {
        return Ok(StepClaim::Call {
            generation: narrow(generation)?,
        });
    }
    // No claim: the call was made, or the execution is not running.
    let status: Option<String> = sqlx::query_scalar(sql::STATUS_OF_EXECUTION)
        .bind(&step.agent_execution_id)
        .bind(&step.conversation_id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(sql_error)?;
    let status =
        status.ok_or_else(|| StoreError::not_found("agent execution", &step.agent_execution_id))?;
    if let Some(state) = load_checkpoint(connection, step, checkpoint::LLM_COMPLETE).await? {
        return Ok(StepClaim::Stored(state));
    }
    Err(StoreError::Conflict(format!(
        "agent execution `{}` is {status}, not running",
        step.agent_execution_id
    )))
}

pub(super) async fn complete_step(
    connection: &mut Connection,
    step: &StepKey,
    state: LlmCompleteState,
) -> Result<LlmCompleteState> {
    let row = llm_row(step, checkpoint::LLM_COMPLETE, &state);
    if insert_checkpoint(connection, sql::INSERT_CHECKPOINT, &row).await? {
        return Ok(state);
    }
    let stored = load_checkpoint(connection, step, checkpoint::LLM_COMPLETE).await?;
    stored.ok_or_else(|| StoreError::Corrupt("a checkpoint was neither inserted nor found".into()))
}

pub(super) async fn save_partial(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
) -> Result<()> {
    insert_checkpoint(
        connection,
        sql::REPLACE_CHECKPOINT,
        &llm_row(step, checkpoint::LLM_PARTIAL, state),
    )
    .await?;
    Ok(())
}

/// Starts the tool if it may run; the record is read only when it may not, so that it says why.
pub(super) async fn claim_tool(
    connection: &mut Connection,
    key: &ToolKey,
    claimant: &str,
) -> Result<ToolClaim> {
    let mut started: Vec<ToolSqlRow> = sqlx::query_as(sql::START_TOOL)
        .bind(&key.conversation_id)
        .bind(&key.execution_id)
        .bind(&key.agent_execution_id)
        .bind(now())
        .bind(claimant)
        .fetch_all(&mut *connection)
        .await
        .map_err(sql_error)?;
    let Some(started) = started.pop() else {
        let record = tool(connection, key).await?;
        if record.approval == approval::PENDING {
            return Err(StoreError::Conflict(format!(
                "nobody has approved `{}` yet",
                key.execution_id
            )));
        }
        let has_ended = tool_status::is_final(&record.status);
        return Ok(if has_ended {
            ToolClaim::Ended(record)
        } else {
            ToolClaim::OutcomeUnknown(record)
        });
    };
    let record = started.tool()?.record;
    let state = ToolStartState {
        execution_id: record.call.execution_id.clone(),
        tool_name: record.call.tool_name.clone(),
        tool_input: record.call.tool_input.clone(),
        attempt: record.attempt,
    };
    let row = CheckpointRow {
        step: &StepKey {
            conversation_id: key.conversation_id.clone(),
            message_id: key.message_id.clone(),
            agent_execution_id: key.agent_execution_id.clone(),
            step: key.step,
        },
        checkpoint_type: checkpoint::TOOL_START,
        execution_id: &key.execution_id,
        generation: record.attempt,
        tokens: (0, 0),
        state: &state,
    };
    insert_checkpoint(connection, sql::REPLACE_CHECKPOINT, &row).await?;
    Ok(ToolClaim::Run(record))
}

pub(super) async fn finish_tool(
    connection: &mut Connection,
    key: &ToolKey,
    end: ToolEnd,
) -> Result<ToolRecord> {
    if !tool_status::is_final(&end.status) {
        return Err(StoreError::Conflict(format!(
            "`{}` is no way for a tool to end",
            end.status
        )));
    }
    let mut finished: Vec<ToolSqlRow> = sqlx::query_as(sql::FINISH_TOOL)
        .bind(&key.conversation_id)
        .bind(&key.execution_id)
        .bind(&key.agent_execution_id)
        .bind(&end.status)
        .bind(end.is_error)
        .bind(i64::from(end.duration_ms))
        .bind(now())
        .bind(Column(&end.events))
        .bind(Column(&end.result))
        .bind(end.full_result.as_ref().map(Column))
        .fetch_all(&mut *connection)
        .await
        .map_err(sql_error)?;
    match finished.pop() {
        Some(row) => Ok(row.tool()?.record),
        None => tool(connection, key).await,
    }
}

async fn tool(connection: &mut Connection, key: &ToolKey) -> Result<ToolRecord> {
    let row: Option<ToolSqlRow> = sqlx::query_as(sql::TOOL)
        .bind(&key.conversation_id)
        .bind(&key.execution_id)
        .bind(&key.agent_execution_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    let row = row.ok_or_else(|| StoreError::not_found("tool execution", &key.execution_id))?;
    Ok(row.tool()?.record)
}

/// The state of a step's LLM call.
pub(super) async fn load_checkpoint(
    connection: &mut Connection,
    step: &StepKey,
    checkpoint_type: &str,
) -> Result<Option<LlmCompleteState>> {
    let state: Option<Column<LlmCompleteState>> = sqlx::query_scalar(sql::CHECKPOINT)
        .bind(&step.agent_execution_id)
        .bind(i64::from(step.step))
        .bind(checkpoint_type)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    Ok(state.map(|state| state.0))
}

/// A row of `execution_checkpoints`.
struct CheckpointRow<'a, S> {
    step: &'a StepKey,
    checkpoint_type: &'static str,
    /// Empty for an LLM call.
    execution_id: &'a str,
    generation: u32,
    /// Input and output.
    tokens: (u32, u32),
    state: &'a S,
}

fn llm_row<'a>(
    step: &'a StepKey,
    checkpoint_type: &'static str,
    state: &'a LlmCompleteState,
) -> CheckpointRow<'a, LlmCompleteState> {
    let (generation, tokens) = (state.generation, (state.input_tokens, state.output_tokens));
    CheckpointRow {
        step,
        checkpoint_type,
        execution_id: "",
        generation,
        tokens,
        state,
    }
}

/// True when the row was written.
async fn insert_checkpoint<S: Serialize + Sync>(
    connection: &mut Connection,
    text: &'static str,
    row: &CheckpointRow<'_, S>,
) -> Result<bool> {
    let StepKey {
        conversation_id,
        message_id,
        agent_execution_id,
        step,
    } = row.step;
    let done = sqlx::query(text)
        .bind(checkpoint_id(
            agent_execution_id,
            *step,
            row.checkpoint_type,
            row.execution_id,
        ))
        .bind(conversation_id)
        .bind(message_id)
        .bind(agent_execution_id)
        .bind(row.checkpoint_type)
        .bind(row.execution_id)
        .bind(i64::from(*step))
        .bind(i64::from(row.generation))
        .bind(i64::from(row.tokens.0))
        .bind(i64::from(row.tokens.1))
        .bind(now())
        .bind(Column(row.state))
        .execute(connection)
        .await
        .map_err(missing("agent execution", agent_execution_id))?;
    Ok(done.rows_affected() == 1)
}
