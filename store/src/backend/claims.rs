//! Claims and ends of tool executions: a tool is done once (invariant 6).

use everturn_proto::{
    turn::ToolStartState,
    words::{ApprovalState, CheckpointType, Effect},
};

use super::{
    Connection,
    dialect::{list, words},
    missing, runnable_approvals,
    snapshot::load_assistants,
    sql::{
        checkpoints::InsertCheckpoint,
        tools::{FINISH_TOOL, START_TOOL, TOOL, UNLESS_RECORDED, ended, of_tool},
    },
    write::write_tools,
};
use crate::{
    api::{Result, ToolClaim, ToolEnd, ToolKey, ToolRecord},
    batch::ToolRow,
    columns::now,
    error::{Missing, StoreError},
    rows::tools::ToolColumns,
};

/// Starts the tool if it may run. The record is read only when it may not, so that it says why.
pub(super) async fn claim_tool(
    connection: &mut Connection,
    key: &ToolKey,
    claimant: &str,
) -> Result<ToolClaim> {
    let (runnable, repeatable) = (runnable_approvals(), Effect::REPEATABLE.map(String::from));
    let mut started: Vec<ToolColumns> = of_tool(words(START_TOOL), key)
        .bind(now())
        .bind(claimant)
        .bind(list(&runnable))
        .bind(list(&repeatable))
        .fetch_all(&mut *connection)
        .await?;
    let Some(started) = started.pop() else {
        return not_started(connection, key).await;
    };
    let record = ToolRecord::from(started);
    let state = ToolStartState {
        execution_id: record.call.execution_id.clone(),
        tool_name: record.call.tool_name.clone(),
        tool_input: record.call.tool_input.clone(),
        attempt: record.attempt,
    };
    let checkpoint = InsertCheckpoint {
        step: &key.step_key(),
        checkpoint_type: CheckpointType::ToolStart,
        execution_id: Some(&key.execution_id),
        generation: record.attempt,
        input_tokens: 0,
        output_tokens: 0,
        now: now(),
        state: &state,
    };
    checkpoint
        .or_replace()
        .execute(connection)
        .await
        .map_err(missing(Missing::AgentExecution, &key.agent_execution_id))?;
    Ok(ToolClaim::Run(record))
}

/// Why a tool was not started.
async fn not_started(connection: &mut Connection, key: &ToolKey) -> Result<ToolClaim> {
    let record = find_record(connection, key).await?;
    let record = record.ok_or_else(|| no_record(key))?;
    if record.approval == ApprovalState::Pending {
        let id = &key.execution_id;
        return Err(StoreError::Conflict(format!(
            "nobody has approved `{id}` yet"
        )));
    }
    Ok(if record.status.is_final() {
        ToolClaim::Ended(record)
    } else {
        ToolClaim::OutcomeUnknown(record)
    })
}

/// Records how a tool execution ended, and returns the record: the first end wins.
pub(super) async fn finish_tool(
    connection: &mut Connection,
    key: &ToolKey,
    end: ToolEnd,
) -> Result<ToolRecord> {
    if !end.status.is_final() {
        let status = &end.status;
        let message = format!("`{status}` is no way for a tool to end");
        return Err(StoreError::Conflict(message));
    }
    let mut finished: Vec<ToolColumns> = ended(FINISH_TOOL, &end, now())
        .bind(&key.conversation_id)
        .bind(&key.execution_id)
        .bind(&key.agent_execution_id)
        .fetch_all(&mut *connection)
        .await?;
    if let Some(columns) = finished.pop() {
        return Ok(columns.into());
    }
    if let Some(record) = find_record(connection, key).await? {
        return Ok(record);
    }
    insert_ended(connection, key, end).await?;
    let record = find_record(connection, key).await?;
    record.ok_or_else(|| no_record(key))
}

/// Creates the record of a tool that ended while its row was missing, from the assistant's row that asked for it.
async fn insert_ended(connection: &mut Connection, key: &ToolKey, end: ToolEnd) -> Result<()> {
    let step = key.step_key();
    let asked = load_assistants(connection, &step, [key.step].into()).await?;
    let calls = asked.into_iter().flat_map(|row| row.tool_calls);
    let (index, call) = calls
        .enumerate()
        .find(|(_, call)| call.execution_id == key.execution_id)
        .ok_or_else(|| no_record(key))?;
    let mut tool = ToolRow::pending(key.step, index, call);
    tool.record.status = end.status.clone();
    tool.record.end = Some(end);
    write_tools(connection, &step, &[tool], UNLESS_RECORDED, now()).await
}

async fn find_record(connection: &mut Connection, key: &ToolKey) -> Result<Option<ToolRecord>> {
    let columns: Option<ToolColumns> = of_tool(TOOL, key).fetch_optional(connection).await?;
    Ok(columns.map(ToolRecord::from))
}

fn no_record(key: &ToolKey) -> StoreError {
    StoreError::not_found(Missing::ToolExecution, &key.execution_id)
}
