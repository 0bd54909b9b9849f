//! Hooks after an agent's turn. The records of the hooks belong to no event.

use chrono::TimeDelta;
use everturn_proto::{
    ids::AFTER_TURN_STEP,
    limits::{AFTER_TURN_LIMIT_S, MAX_HOOKS_AFTER_TURNS},
    turn::ToolCall,
    words::{AgentExecutionStatus, ToolStatus},
};

use super::{
    Connection,
    lock::lock_known,
    statement::Statement as _,
    statements::{agent_executions::BeginHooks, tools::OpenHooks},
    write,
};
use crate::{
    api::{Result, StepKey},
    batch::ToolRow,
    columns::now,
    error::{Missing, StoreError},
};

/// Inserts the records of the hooks after a turn; existing records stay. From then on, no gateway starts the hooks'
/// workflow. Returns false when too many hooks of the conversation's earlier turns have not ended.
pub(super) async fn begin(
    connection: &mut Connection,
    step: &StepKey,
    calls: &[ToolCall],
) -> Result<bool> {
    // A conversation removed meanwhile gets no record.
    lock_known(connection, &step.conversation_id).await?;
    let id = &step.agent_execution_id;
    let begin = BeginHooks {
        agent_execution_id: id,
        conversation_id: &step.conversation_id,
    };
    let status: Option<String> = begin
        .query_scalar()?
        .fetch_optional(&mut *connection)
        .await?;
    let status = status.ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))?;
    let completed = AgentExecutionStatus::Completed;
    if status != completed.as_str() {
        let message = format!("agent execution `{id}` is {status}, not {completed}");
        return Err(StoreError::Conflict(message));
    }
    let now = now();
    let open = ToolStatus::OPEN.map(String::from);
    let hooks = OpenHooks {
        conversation_id: &step.conversation_id,
        step: i64::from(AFTER_TURN_STEP),
        // The workflow of an older hook has ended.
        since: now - TimeDelta::seconds(i64::from(AFTER_TURN_LIMIT_S)),
        agent_execution_id: id,
        open_statuses: &open,
    };
    let open: i64 = hooks.query_scalar()?.fetch_one(&mut *connection).await?;
    if usize::try_from(open).unwrap_or(usize::MAX) + calls.len() > MAX_HOOKS_AFTER_TURNS {
        return Ok(false);
    }
    let records = calls.iter().enumerate();
    let records: Vec<_> = records
        .map(|(index, call)| ToolRow {
            // No event observes the record, and no end of a turn closes it.
            observed_sequence: Some(0),
            ..ToolRow::pending(AFTER_TURN_STEP, index, call.clone())
        })
        .collect();
    write::insert_unless_recorded(connection, step, &records, now).await?;
    Ok(true)
}
