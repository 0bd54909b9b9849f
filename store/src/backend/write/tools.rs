//! Writes the records of tool executions and the changes of a person's answer.

use std::iter;

use chrono::{DateTime, Utc};
use everturn_proto::{
    turn::ToolCompleteState,
    words::{CheckpointType, ToolStatus},
};

use super::super::{
    Connection,
    dialect::Parts,
    statements::{
        checkpoints::InsertCompletions,
        messages::{ReviseMessages, SetToolCalls},
        outside::{ApproveTool, ForgetAnswers, InsertGrant, MarkSavedAnswer},
        tools::{
            AskQuestion, EndDelegateCall, InsertObservedTools, InsertTools,
            InsertToolsUnlessRecorded, ObserveTool, SettleTool,
        },
    },
};
use crate::{
    api::{Result, StepKey, ToolEnd},
    batch::{Batch, BatchRequest, DelegateCallEnd, ObservedTool, ToolRow, completion_id},
};

/// Returns a row of an insert of records. The inserts have the same columns, and differ in the case of an existing
/// record.
macro_rules! record {
    ($insert:ident, $step:expr, $tool:expr, $now:expr) => {{
        let (step, tool): (&StepKey, &ToolRow) = ($step, $tool);
        let (call, end) = (&tool.record.call, tool.record.end.as_ref());
        $insert {
            conversation_id: &step.conversation_id,
            execution_id: &call.execution_id,
            message_id: &step.message_id,
            agent_execution_id: &step.agent_execution_id,
            step: i64::from(tool.step),
            call_index: i64::from(tool.call_index),
            call_id: &call.call_id,
            tool_name: &call.tool_name,
            effect: &call.effect,
            timeout_ms: i64::from(call.timeout_ms),
            status: tool.record.status.as_str(),
            is_error: end.is_some_and(|end| end.is_error),
            duration_ms: i64::from(end.map_or(0, |end| end.duration_ms)),
            observed_sequence: tool.observed_sequence.map(i64::from),
            created_at: $now,
            finished_at: end.map(|_| $now),
            kind: &call.kind,
            approval: tool.record.approval.as_str(),
            input_hash: &call.input_hash,
            definition_hash: &call.definition_hash,
            approval_rule: call.rule(),
            title_template: &call.title_template,
            expires_at: tool.expires_at,
            signatures: &call.signatures,
            tool_input: call.tool_input.clone().unwrap_or_default(),
            events: end.map_or(&[][..], |end| &end.events),
            result: end.map(|end| &end.result),
            full_result: end.and_then(|end| end.full_result.as_ref()),
        }
    }};
}

/// A tool execution that has ended, for its checkpoint `tool_complete`.
pub(in super::super) struct Completion<'a> {
    /// The message and the agent execution of the call.
    pub(in super::super) step: &'a StepKey,
    /// The number of the call's step.
    pub(in super::super) number: u32,
    pub(in super::super) execution_id: &'a str,
    pub(in super::super) attempt: u32,
    pub(in super::super) status: &'a ToolStatus,
}

/// Adds the checkpoints `tool_complete`. A stored checkpoint stays unchanged.
pub(in super::super) fn complete(
    parts: &mut Parts,
    completions: &[Completion<'_>],
    now: DateTime<Utc>,
) {
    let made = completions.iter().map(|completion| {
        let id = completion_id(&completion.step.conversation_id, completion.execution_id);
        (
            id,
            complete_state(completion.execution_id, completion.status),
        )
    });
    let made: Vec<_> = made.collect();
    let rows = completions.iter().zip(&made);
    parts.add_rows(rows.map(|(completion, (id, state))| InsertCompletions {
        checkpoint_id: id,
        conversation_id: &completion.step.conversation_id,
        message_id: &completion.step.message_id,
        agent_execution_id: &completion.step.agent_execution_id,
        checkpoint_type: CheckpointType::ToolComplete.as_str(),
        execution_id: completion.execution_id,
        step: i64::from(completion.number),
        generation: i64::from(completion.attempt),
        input_tokens: 0,
        output_tokens: 0,
        now,
        execution_state: state,
    }));
}

/// Returns the state of the checkpoint `tool_complete`. The record has the result, so the state has no copy.
pub(in super::super) fn complete_state(
    execution_id: &str,
    status: &ToolStatus,
) -> ToolCompleteState {
    ToolCompleteState {
        execution_id: execution_id.to_owned(),
        status: status.into(),
    }
}

/// Adds records of tools that have not started.
pub(super) fn insert_pending(
    parts: &mut Parts,
    step: &StepKey,
    tools: &[ToolRow],
    now: DateTime<Utc>,
) {
    let records = tools.iter();
    parts.add_rows(records.map(|tool| record!(InsertTools, step, tool, now)));
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
        return parts.add(ObserveTool {
            conversation_id: &step.conversation_id,
            execution_id: &tool.record.call.execution_id,
            observed_sequence: tool.observed_sequence.map(i64::from),
        });
    }
    let records = tools.iter().map(|observed| &observed.tool);
    parts.add_rows(records.map(|tool| record!(InsertObservedTools, step, tool, now)));
    let ended = tools.iter().filter(|observed| observed.ends_run);
    let completions: Vec<_> = ended
        .map(|observed| completion(step, &observed.tool))
        .collect();
    complete(parts, &completions, now);
}

fn completion<'a>(step: &'a StepKey, tool: &'a ToolRow) -> Completion<'a> {
    Completion {
        step,
        number: tool.step,
        execution_id: &tool.record.call.execution_id,
        attempt: tool.record.attempt,
        status: &tool.record.status,
    }
}

/// Adds the question of a running tool. The answers to the call's earlier requests go: an answer counts for one request.
pub(super) fn ask_question(parts: &mut Parts, step: &StepKey, batch: &Batch) {
    let Some(tool) = &batch.asked_tool else {
        return;
    };
    let (conversation_id, call) = (&step.conversation_id, &tool.record.call);
    parts.add(ForgetAnswers {
        conversation_id,
        execution_id: &call.execution_id,
    });
    parts.add(AskQuestion {
        conversation_id,
        execution_id: &call.execution_id,
        pending: tool.record.status.as_str(),
        approval: tool.record.approval.as_str(),
        input_hash: &call.input_hash,
        expires_at: tool.expires_at,
        question: tool.record.question.as_ref(),
    });
}

/// Adds the mark of the answer, and a granted approval. A denied or expired approval is written with the observe of its
/// call.
pub(super) fn answer_approval(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    if let Some(saved) = &batch.saved_answer
        && let Some(answer_id) = &saved.answer_id
    {
        parts.add(MarkSavedAnswer {
            conversation_id: &step.conversation_id,
            execution_id: &saved.execution_id,
            answer_id,
        });
    }
    if let Some(tool) = &batch.approved_tool {
        let call = &tool.record.call;
        parts.add(ApproveTool {
            conversation_id: &step.conversation_id,
            execution_id: &call.execution_id,
            approval: tool.record.approval.as_str(),
            input_hash: &call.input_hash,
            expires_at: tool.expires_at,
            tool_input: call.tool_input.clone().unwrap_or_default(),
            question: tool.record.question.as_ref(),
        });
    }
    if let Some((assistant_message_id, calls)) = &batch.edited_calls {
        parts.add(SetToolCalls {
            conversation_id: &step.conversation_id,
            message_id: assistant_message_id,
            tool_calls: calls,
        });
    }
    if let Some(granted) = &batch.granted_tool {
        parts.add(InsertGrant {
            conversation_id: &step.conversation_id,
            tool_name: &granted.tool_name,
            now,
            definition_hash: &granted.definition_hash,
        });
    }
}

/// Adds the end that a person gives to a call, and marks the messages of the call's thread as changed.
pub(super) fn settle(parts: &mut Parts, request: &BatchRequest, batch: &Batch) {
    let (Some(tool), Some(changed)) = (&batch.settled_tool, batch.observed_steps.first()) else {
        return;
    };
    let (step, thread) = (&request.step, request.thread());
    let Some(end) = &tool.record.end else {
        return;
    };
    parts.add(SettleTool {
        status: end.status.as_str(),
        is_error: end.is_error,
        result: &end.result,
        full_result: end.full_result.as_ref(),
        conversation_id: &step.conversation_id,
        execution_id: &tool.record.call.execution_id,
    });
    parts.add(ReviseMessages {
        conversation_id: &step.conversation_id,
        thread: thread.sub_agent().unwrap_or_default(),
        message_id: &changed.assistant_message_id,
    });
}

/// Adds the end of the call that started this sub-agent. A missing record is inserted.
pub(super) fn end_delegate_call(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    let Some(DelegateCallEnd {
        asked_by: caller,
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
    parts.add(EndDelegateCall {
        status: end.status.as_str(),
        is_error: end.is_error,
        duration_ms: i64::from(end.duration_ms),
        now,
        events: &end.events,
        result: &end.result,
        full_result: end.full_result.as_ref(),
        conversation_id: &step.conversation_id,
        execution_id: &tool.record.call.execution_id,
    });
    let asked_by = StepKey {
        agent_execution_id: caller.clone(),
        ..step.clone()
    };
    let completion = Completion {
        status: &end.status,
        ..completion(&asked_by, tool)
    };
    complete(parts, &[completion], now);
}

/// Inserts records of tools that have not started. Existing records stay unchanged.
pub(in super::super) async fn insert_unless_recorded(
    connection: &mut Connection,
    step: &StepKey,
    tools: &[ToolRow],
    now: DateTime<Utc>,
) -> Result<()> {
    let mut parts = Parts::default();
    let records = tools.iter();
    parts.add_rows(records.map(|tool| record!(InsertToolsUnlessRecorded, step, tool, now)));
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
    let record = record!(InsertToolsUnlessRecorded, step, &tool, now);
    parts.add_rows(iter::once(record));
    complete(parts, &[completion(step, &tool)], now);
}
