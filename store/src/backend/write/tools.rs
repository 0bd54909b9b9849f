//! Writes records of tool executions, and what a person's answer changes.

use chrono::{DateTime, Utc};
use sqlx::types::Json as Column;

use super::{
    super::{
        Connection,
        sql::{
            messages::SET_TOOL_CALLS,
            outside::{APPROVE_TOOL, INSERT_GRANT},
            tools::{END_DELEGATE_CALL, INSERT_TOOLS, UNLESS_RECORDED, ended},
        },
    },
    rows::insert_rows,
};
use crate::{
    api::{Result, StepKey, ToolEnd},
    batch::{Batch, DelegateCallEnd, ToolRow},
};

/// Inserts records. The end of the text, `on_conflict`, says what happens to records that exist.
pub(in super::super) async fn write_tools(
    connection: &mut Connection,
    step: &StepKey,
    tools: &[ToolRow],
    on_conflict: &'static str,
    now: DateTime<Utc>,
) -> Result<()> {
    insert_rows(connection, INSERT_TOOLS, tools, on_conflict, |row, tool| {
        let (call, end) = (&tool.record.call, tool.record.end.as_ref());
        row.push_bind(&step.conversation_id)
            .push_bind(&call.execution_id)
            .push_bind(&step.message_id)
            .push_bind(&step.agent_execution_id)
            .push_bind(i64::from(tool.step))
            .push_bind(i64::from(tool.call_index))
            .push_bind(&call.call_id)
            .push_bind(&call.tool_name)
            .push_bind(&call.effect)
            .push_bind(i64::from(call.timeout_ms))
            .push_bind(tool.record.status.as_str())
            .push_bind(end.is_some_and(|end| end.is_error))
            .push_bind(i64::from(end.map_or(0, |end| end.duration_ms)))
            .push_bind(tool.observed_sequence.map(i64::from))
            .push_bind(now)
            .push_bind(end.map(|_| now))
            .push_bind(&call.kind)
            .push_bind(tool.record.approval.as_str())
            .push_bind(&call.input_hash)
            .push_bind(tool.expires_at)
            .push_bind(Column(&call.signatures))
            .push_bind(Column(call.tool_input.clone().unwrap_or_default()))
            .push_bind(Column(end.map_or(&[][..], |end| &end.events)))
            .push_bind(end.map(|end| Column(&end.result)))
            .push_bind(end.and_then(|end| end.full_result.as_ref()).map(Column));
    })
    .await
}

/// Writes an approval that was given. One that was denied or has expired is written with the observe of its call.
pub(super) async fn write_approval(
    connection: &mut Connection,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if let Some(tool) = &batch.approved_tool {
        let call = &tool.record.call;
        sqlx::query(APPROVE_TOOL)
            .bind(&step.conversation_id)
            .bind(&call.execution_id)
            .bind(tool.record.approval.as_str())
            .bind(&call.input_hash)
            .bind(tool.expires_at)
            .bind(Column(call.tool_input.clone().unwrap_or_default()))
            .execute(&mut *connection)
            .await?;
    }
    if let Some((assistant_message_id, calls)) = &batch.edited_calls {
        sqlx::query(SET_TOOL_CALLS)
            .bind(&step.conversation_id)
            .bind(assistant_message_id)
            .bind(Column(calls))
            .execute(&mut *connection)
            .await?;
    }
    if let Some(tool_name) = &batch.granted_tool {
        sqlx::query(INSERT_GRANT)
            .bind(&step.conversation_id)
            .bind(tool_name)
            .bind(now)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Writes the end of the call that started this sub-agent. A missing record is inserted.
pub(super) async fn write_delegate_call_end(
    connection: &mut Connection,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    let Some(DelegateCallEnd {
        tool,
        end,
        missing_of,
    }) = &batch.delegate_call_end
    else {
        return Ok(());
    };
    if let Some(asked_by) = missing_of {
        return insert_ended(connection, asked_by, tool.clone(), end.clone(), now).await;
    }
    ended::<(String,)>(END_DELEGATE_CALL, end, now)
        .bind(&step.conversation_id)
        .bind(&tool.record.call.execution_id)
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Inserts the record of a tool that ended while its row was missing. A record that exists by now stays as it is.
pub(in super::super) async fn insert_ended(
    connection: &mut Connection,
    step: &StepKey,
    mut tool: ToolRow,
    end: ToolEnd,
    now: DateTime<Utc>,
) -> Result<()> {
    tool.record.status = end.status.clone();
    tool.record.end = Some(end);
    write_tools(connection, step, &[tool], UNLESS_RECORDED, now).await
}
