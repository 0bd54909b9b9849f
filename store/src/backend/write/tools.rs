//! Writes the records of tool executions and the changes of a person's answer.

use chrono::{DateTime, Utc};
use sqlx::types::Json as Column;

use super::{
    super::{
        Connection,
        dialect::Parts,
        sql::{
            messages::SET_TOOL_CALLS,
            outside::{APPROVE_TOOL, INSERT_GRANT},
            tools::{END_DELEGATE_CALL, OBSERVE_TOOL, OR_OBSERVE_TOOLS, UNLESS_RECORDED, bind_end},
        },
    },
    rows::{Row, insert_rows},
};
use crate::{
    api::{Result, StepKey, ToolEnd},
    batch::{Batch, DelegateCallEnd, ObservedTool, ToolRow},
};

const TOOLS: &str = "tool_execution_records";

/// Adds records of tools that have not started.
pub(super) fn insert_pending(
    parts: &mut Parts,
    step: &StepKey,
    tools: &[ToolRow],
    now: DateTime<Utc>,
) {
    insert_rows(parts, TOOLS, tools, "", |row, tool| {
        set_tool(row, step, tool, now);
    });
}

/// Adds the ends and observes of tools. Missing records are inserted. For a single tool with a stored end, the usual
/// case in a turn without errors, only the observe is written.
pub(super) fn observe(
    parts: &mut Parts,
    step: &StepKey,
    tools: &[ObservedTool],
    now: DateTime<Utc>,
) {
    if let [observed] = tools
        && observed.is_recorded
    {
        let tool = &observed.tool;
        return parts.add(OBSERVE_TOOL, |values| {
            values
                .bind(&step.conversation_id)
                .bind(&tool.record.call.execution_id)
                .bind(tool.observed_sequence.map(i64::from));
        });
    }
    insert_rows(parts, TOOLS, tools, OR_OBSERVE_TOOLS, |row, observed| {
        set_tool(row, step, &observed.tool, now);
    });
}

/// Sets the columns of a record.
fn set_tool(row: &mut Row<'_, '_>, step: &StepKey, tool: &ToolRow, now: DateTime<Utc>) {
    let (call, end) = (&tool.record.call, tool.record.end.as_ref());
    row.set("conversation_id", &step.conversation_id)
        .set("execution_id", &call.execution_id)
        .set("message_id", &step.message_id)
        .set("agent_execution_id", &step.agent_execution_id)
        .set("step", i64::from(tool.step))
        .set("call_index", i64::from(tool.call_index))
        .set("call_id", &call.call_id)
        .set("tool_name", &call.tool_name)
        .set("effect", &call.effect)
        .set("timeout_ms", i64::from(call.timeout_ms))
        .set("status", tool.record.status.as_str())
        .set("is_error", end.is_some_and(|end| end.is_error))
        .set(
            "duration_ms",
            i64::from(end.map_or(0, |end| end.duration_ms)),
        )
        .set("observed_sequence", tool.observed_sequence.map(i64::from))
        .set("created_at", now)
        .set("finished_at", end.map(|_| now))
        .set("kind", &call.kind)
        .set("approval", tool.record.approval.as_str())
        .set("input_hash", &call.input_hash)
        .set("definition_hash", &call.definition_hash)
        .set("approval_rule", Column(call.rule()))
        .set("expires_at", tool.expires_at)
        .set("signatures", Column(&call.signatures))
        .set(
            "tool_input",
            Column(call.tool_input.clone().unwrap_or_default()),
        )
        .set("events", Column(end.map_or(&[][..], |end| &end.events)))
        .set("result", end.map(|end| Column(&end.result)))
        .set(
            "full_result",
            end.and_then(|end| end.full_result.as_ref()).map(Column),
        );
}

/// Adds a granted approval. A denied or expired approval is written with the observe of its call.
pub(super) fn answer_approval(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    if let Some(tool) = &batch.approved_tool {
        let call = &tool.record.call;
        parts.add(APPROVE_TOOL, |values| {
            values
                .bind(&step.conversation_id)
                .bind(&call.execution_id)
                .bind(tool.record.approval.as_str())
                .bind(&call.input_hash)
                .bind(tool.expires_at)
                .bind(Column(call.tool_input.clone().unwrap_or_default()));
        });
    }
    if let Some((assistant_message_id, calls)) = &batch.edited_calls {
        parts.add(SET_TOOL_CALLS, |values| {
            values
                .bind(&step.conversation_id)
                .bind(assistant_message_id)
                .bind(Column(calls));
        });
    }
    if let Some(granted) = &batch.granted_tool {
        parts.add(INSERT_GRANT, |values| {
            values
                .bind(&step.conversation_id)
                .bind(&granted.tool_name)
                .bind(now)
                .bind(&granted.definition_hash);
        });
    }
}

/// Adds the end of the call that started this sub-agent. A missing record is inserted.
pub(super) fn end_delegate_call(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    let Some(DelegateCallEnd {
        tool,
        end,
        missing_of,
    }) = &batch.delegate_call_end
    else {
        return;
    };
    if let Some(asked_by) = missing_of {
        return add_ended(parts, asked_by, tool.clone(), end.clone(), now);
    }
    parts.add(END_DELEGATE_CALL, |values| {
        bind_end(values, end, now)
            .bind(&step.conversation_id)
            .bind(&tool.record.call.execution_id);
    });
}

/// Inserts records of tools that have not started. Existing records stay unchanged.
pub(in super::super) async fn insert_unless_recorded(
    connection: &mut Connection,
    step: &StepKey,
    tools: &[ToolRow],
    now: DateTime<Utc>,
) -> Result<()> {
    let mut parts = Parts::default();
    insert_rows(&mut parts, TOOLS, tools, UNLESS_RECORDED, |row, tool| {
        set_tool(row, step, tool, now);
    });
    parts.execute(connection).await
}

/// Inserts the record of a tool that ended while its row was missing. An existing record stays unchanged.
pub(in super::super) async fn insert_ended(
    connection: &mut Connection,
    step: &StepKey,
    tool: ToolRow,
    end: ToolEnd,
    now: DateTime<Utc>,
) -> Result<()> {
    let mut parts = Parts::default();
    add_ended(&mut parts, step, tool, end, now);
    parts.execute(connection).await
}

fn add_ended(
    parts: &mut Parts,
    step: &StepKey,
    mut tool: ToolRow,
    end: ToolEnd,
    now: DateTime<Utc>,
) {
    tool.record.status = end.status.clone();
    tool.record.end = Some(end);
    insert_rows(parts, TOOLS, &[tool], UNLESS_RECORDED, |row, tool| {
        set_tool(row, step, tool, now);
    });
}
