//! Claims and ends of tool executions (invariant 6, done once).

use everturn_proto::{
    turn::{ToolCall, ToolStartState},
    words::{ApprovalState, CheckpointType, Effect, ToolStatus},
};

use super::{
    Connection,
    checkpoints::{CheckpointRow, insert_or_replace},
    dialect::{Parts, WRITES_IN_PARTS},
    runnable_approvals, runs,
    snapshot::load_assistants,
    statement::Statement as _,
    statements::tools::{Caller, FinishTool, ReleaseTool, StartTool, Tool},
    write::{Completion, complete, complete_state, insert_ended},
};
use crate::{
    api::{Result, StepKey, ToolCaller, ToolClaim, ToolEnd, ToolKey, ToolRecord},
    batch::{ToolRow, checkpoint_id, completion_id},
    columns::now,
    error::{Missing, StoreError},
    rows::tools::{StartedRow, ToolColumns},
};

/// Starts the tool if the tool may run. Otherwise reads the record to find the reason.
pub(super) async fn claim_tool(
    connection: &mut Connection,
    key: &ToolKey,
    claimant: &str,
) -> Result<ToolClaim> {
    let (runnable, repeatable) = (runnable_approvals(), Effect::REPEATABLE.map(String::from));
    let step = key.step_key();
    let (id, of) = (&key.execution_id, &key.agent_execution_id);
    let start = StartTool {
        conversation_id: &key.conversation_id,
        execution_id: id,
        agent_execution_id: of,
        now: now(),
        claimant,
        runnable_approvals: &runnable,
        repeatable_effects: &repeatable,
        pending: ToolStatus::Pending.as_str(),
        running: ToolStatus::Running.as_str(),
        epoch: runs::newest(key.epoch),
        checkpoint_id: &checkpoint_id(of, key.step, &CheckpointType::ToolStart, Some(id)),
        message_id: &step.message_id,
        step: i64::from(key.step),
        checkpoint_type: CheckpointType::ToolStart.as_str(),
    };
    let mut started: Vec<StartedRow> = start.query_as()?.fetch_all(&mut *connection).await?;
    let Some(StartedRow { columns, caller }) = started.pop() else {
        return not_started(connection, key).await;
    };
    let record = ToolRecord::from(columns);
    if !WRITES_IN_PARTS {
        note_start(connection, &step, &record).await?;
    }
    Ok(ToolClaim::Run { record, caller })
}

/// Stores the checkpoint `tool_start`.
async fn note_start(
    connection: &mut Connection,
    step: &StepKey,
    record: &ToolRecord,
) -> Result<()> {
    let state = ToolStartState {
        execution_id: record.call.execution_id.clone(),
        tool_name: record.call.tool_name.clone(),
        tool_input: record.call.tool_input.clone(),
        attempt: record.attempt,
    };
    let checkpoint = CheckpointRow {
        step,
        checkpoint_type: CheckpointType::ToolStart,
        execution_id: Some(&record.call.execution_id),
        generation: record.attempt,
        input_tokens: 0,
        output_tokens: 0,
        now: now(),
        state: &state,
    };
    insert_or_replace(connection, &checkpoint).await
}

/// Returns the reason why a tool was not started.
async fn not_started(connection: &mut Connection, key: &ToolKey) -> Result<ToolClaim> {
    let record = find_record(connection, key).await?;
    let record = record.ok_or_else(|| no_record(key))?;
    if record.open_question().is_some() {
        return Ok(ToolClaim::Asks(record));
    }
    if record.approval == ApprovalState::Pending {
        let id = &key.execution_id;
        return Err(StoreError::Conflict(format!(
            "nobody has approved `{id}` yet"
        )));
    }
    if record.status.is_final() {
        return Ok(ToolClaim::Ended(record));
    }
    runs::check_unlocked(connection, &key.conversation_id, key.epoch).await?;
    let caller = Caller {
        agent_execution_id: &key.agent_execution_id,
        conversation_id: &key.conversation_id,
    };
    let caller: Option<ToolCaller> = caller.query_as()?.fetch_optional(connection).await?;
    let caller = caller.ok_or_else(|| no_record(key))?;
    Ok(ToolClaim::OutcomeUnknown { record, caller })
}

/// Gives back the claim of a tool that was not run. The checkpoint `tool_start` stays until the next claim replaces it.
pub(super) async fn release_tool(
    connection: &mut Connection,
    key: &ToolKey,
    claimant: &str,
) -> Result<()> {
    let release = ReleaseTool {
        conversation_id: &key.conversation_id,
        execution_id: &key.execution_id,
        agent_execution_id: &key.agent_execution_id,
        claimant,
        pending: ToolStatus::Pending.as_str(),
        running: ToolStatus::Running.as_str(),
    };
    release.query()?.execute(connection).await?;
    Ok(())
}

/// Records the end of a tool execution with its checkpoint `tool_complete`, and returns the record. The first end wins.
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
    let (step, now) = (key.step_key(), now());
    let open = ToolStatus::OPEN.map(String::from);
    let state = complete_state(&key.execution_id, &end.status);
    let finish = FinishTool {
        status: end.status.as_str(),
        is_error: end.is_error,
        duration_ms: i64::from(end.duration_ms),
        now,
        events: &end.events,
        result: &end.result,
        full_result: end.full_result.as_ref(),
        conversation_id: &key.conversation_id,
        execution_id: &key.execution_id,
        agent_execution_id: &key.agent_execution_id,
        open_statuses: &open,
        checkpoint_id: &completion_id(&key.conversation_id, &key.execution_id),
        message_id: &step.message_id,
        checkpoint_type: CheckpointType::ToolComplete.as_str(),
        execution_state: &state,
    };
    let query = finish.query_as()?;
    let mut finished: Vec<ToolColumns> = query.fetch_all(&mut *connection).await?;
    if let Some(columns) = finished.pop() {
        let record = ToolRecord::from(columns);
        if !WRITES_IN_PARTS {
            note_end(connection, &step, &record).await?;
        }
        return Ok(record);
    }
    if let Some(record) = find_record(connection, key).await? {
        return Ok(record);
    }
    let tool = lost_record(connection, key, &step).await?;
    insert_ended(connection, &step, tool, end, now).await?;
    let record = find_record(connection, key).await?;
    record.ok_or_else(|| no_record(key))
}

/// Stores the checkpoint `tool_complete` of an ended tool execution.
async fn note_end(connection: &mut Connection, step: &StepKey, record: &ToolRecord) -> Result<()> {
    let completion = Completion {
        step,
        number: step.step,
        execution_id: &record.call.execution_id,
        attempt: record.attempt,
        status: &record.status,
    };
    let mut parts = Parts::default();
    complete(&mut parts, &[completion], now());
    parts.execute(connection).await
}

/// Rebuilds a tool's missing record from the assistant's row of the step that asked for the tool.
async fn lost_record(
    connection: &mut Connection,
    key: &ToolKey,
    step: &StepKey,
) -> Result<ToolRow> {
    let asked = load_assistants(connection, step, [key.step].into()).await?;
    let is_wanted = |call: &ToolCall| call.execution_id == key.execution_id;
    let found = asked.iter().find_map(|row| row.record_of(is_wanted));
    found.ok_or_else(|| no_record(key))
}

async fn find_record(connection: &mut Connection, key: &ToolKey) -> Result<Option<ToolRecord>> {
    let tool = Tool {
        conversation_id: &key.conversation_id,
        execution_id: &key.execution_id,
        agent_execution_id: &key.agent_execution_id,
    };
    let columns: Option<ToolColumns> = tool.query_as()?.fetch_optional(connection).await?;
    Ok(columns.map(ToolRecord::from))
}

fn no_record(key: &ToolKey) -> StoreError {
    StoreError::not_found(Missing::ToolExecution, &key.execution_id)
}
