//! Collects the statements of a batch and their parameters. The number of statements does not depend on the number of
//! rows.
//!
//! `Parts`, beside the dialects, runs the statements: PostgreSQL needs one round trip. Therefore no statement of
//! [`batch`] reads a row written by another statement of [`batch`]. The statements of [`results`] do read rows of
//! [`batch`].

mod rows;
mod tools;
pub(crate) mod values;

pub(super) use tools::{
    Completion, complete, complete_state, insert_ended, insert_unless_recorded,
};

use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    turn::ToolCall,
    words::{AgentExecutionStatus, MessageRole},
};

use super::{
    dialect::Parts,
    statement::Statement,
    statements::{
        agent_executions::AdvanceExecution,
        context::CutContext,
        conversations::AdvanceConversation,
        events::InsertEvents,
        messages::{InsertTakenMessage, SetToolResults, TakeMessage},
        plans::InsertPlans,
        reconciliation::EndCheck,
    },
    usage,
};
use crate::{
    api::{Spent, StepKey},
    batch::{AssistantRow, Batch, BatchRequest, TakenMessage},
    columns::wide,
};

impl Parts {
    /// Adds a statement.
    pub(crate) fn add<S: Statement>(&mut self, statement: S) {
        self.add_made(true, |values| {
            statement.bind(values);
            S::TEXT.into()
        });
    }
}

/// Adds every row of the batch in the order of their foreign keys, except the rows of [`advance_conversation`] and
/// [`results`].
pub(crate) fn batch(parts: &mut Parts, request: &BatchRequest, batch: &Batch, now: DateTime<Utc>) {
    let step = &request.step;
    if let Some(taken) = &batch.taken {
        take_message(parts, request, taken, now);
    }
    if let Some(row) = &batch.assistant {
        insert_assistant(parts, request, row, now);
    }
    insert_events(parts, step, batch, now);
    cut_context(parts, request, batch, now);
    tools::insert_pending(parts, step, &batch.pending_tools, now);
    tools::ask_question(parts, step, batch);
    tools::answer_approval(parts, step, batch, now);
    tools::observe(parts, step, &batch.observed_tools, now);
    tools::settle(parts, request, batch);
    insert_plans(parts, step, batch, now);
    tools::end_delegate_call(parts, step, batch, now);
}

/// Adds the update of the batch's conversation.
pub(crate) fn advance_conversation(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    let Spent {
        usage,
        nano_usd,
        estimated_calls,
        cut,
    } = batch.spent;
    parts.add(AdvanceConversation {
        conversation_id: &step.conversation_id,
        last_sequence: i64::from(batch.last_sequence),
        new_messages: i64::from(batch.new_messages),
        now,
        changes_lists: batch.changes_lists(),
        title: batch.title.as_deref().unwrap_or_default(),
        spent_input: i64::from(usage.input_tokens),
        spent_output: i64::from(usage.output_tokens),
        spent_cached: i64::from(usage.cached_tokens),
        spent_cache_write: i64::from(usage.cache_write_tokens),
        spent_reasoning: i64::from(usage.reasoning_tokens),
        spent_nano: nano_usd.map(wide),
        spent_estimated: i64::from(estimated_calls),
        spent_cut_calls: i64::from(cut.calls),
        spent_cut_tokens: i64::from(cut.tokens),
        spent_cut_nano: wide(cut.nano_usd),
    });
}

/// Adds the update of the batch's agent execution: the number of saved steps, and the end if the batch ends the agent
/// execution. From the end on, the hooks after the turn wait for their workflow. With the end of a turn, the gateways'
/// check of the turn goes, too. `saved_steps` is the number before the batch.
pub(crate) fn advance_agent_execution(
    parts: &mut Parts,
    step: &StepKey,
    batch: &Batch,
    saved_steps: u32,
    now: DateTime<Utc>,
) {
    let end = batch.end.as_ref();
    if end.is_none() && batch.steps == saved_steps {
        return;
    }
    let status = end.map_or(&AgentExecutionStatus::Running, |end| &end.status);
    let hooks = batch.hooks.as_ref();
    parts.add(AdvanceExecution {
        agent_execution_id: &step.agent_execution_id,
        steps: i64::from(batch.steps),
        status: status.as_str(),
        error_code: end.and_then(|end| end.error_code.as_deref()),
        error_message: end.and_then(|end| end.error_message.as_deref()),
        finished_at: end.map(|_| now),
        has_hooks: hooks.is_some(),
        tool_queue: hooks.and_then(|hooks| hooks.tool_queue.as_deref()),
    });
    if end.is_some() {
        parts.add(EndCheck {
            conversation_id: &step.conversation_id,
            agent_execution_id: &step.agent_execution_id,
        });
    }
}

/// Adds the copy of a step's tool results into the step's assistant row. The copy is made once, when no call of the
/// step is open any more. Otherwise a step with many large results would be rewritten for every result. The end of an
/// agent execution also adds the sums of its tool calls.
pub(crate) fn results(parts: &mut Parts, step: &StepKey, batch: &Batch, now: DateTime<Utc>) {
    let observed_now: Vec<_> = batch
        .observed_tools
        .iter()
        .map(|observed| observed.tool.record.call.execution_id.clone())
        .collect();
    // Only one step at a time has open tools, so the loop adds at most one statement.
    for observed in &batch.observed_steps {
        parts.add(SetToolResults {
            conversation_id: &step.conversation_id,
            message_id: &observed.assistant_message_id,
            execution_ids: &observed.execution_ids,
            observed_now: &observed_now,
        });
    }
    if let Some(end) = &batch.end {
        // The last step of a completed agent execution has called no tool.
        let without_tools = u32::from(end.status == AgentExecutionStatus::Completed);
        if batch.steps > without_tools {
            usage::add_tool_calls(parts, step, now);
        }
    }
}

/// Puts a user's message into the timeline, and inserts a message without a row.
fn take_message(
    parts: &mut Parts,
    request: &BatchRequest,
    taken: &TakenMessage,
    now: DateTime<Utc>,
) {
    let step = &request.step;
    let Some(content) = &taken.new_content else {
        return parts.add(TakeMessage {
            conversation_id: &step.conversation_id,
            message_id: &taken.id,
            agent_execution_id: &step.agent_execution_id,
            sequence_number: i64::from(taken.sequence_number),
        });
    };
    parts.add(InsertTakenMessage {
        conversation_id: &step.conversation_id,
        message_id: &taken.id,
        role: MessageRole::User.as_str(),
        agent_execution_id: &step.agent_execution_id,
        step: None,
        sequence_number: i64::from(taken.sequence_number),
        now,
        thread: request.thread().sub_agent().unwrap_or_default(),
        content,
        tool_calls: &[] as &[ToolCall],
    });
}

fn insert_assistant(
    parts: &mut Parts,
    request: &BatchRequest,
    row: &AssistantRow,
    now: DateTime<Utc>,
) {
    parts.add(InsertTakenMessage {
        conversation_id: &request.step.conversation_id,
        message_id: &row.id,
        role: MessageRole::Assistant.as_str(),
        agent_execution_id: &request.step.agent_execution_id,
        step: Some(i64::from(row.step)),
        sequence_number: i64::from(row.sequence_number),
        now,
        thread: request.thread().sub_agent().unwrap_or_default(),
        content: &row.content,
        tool_calls: &row.tool_calls,
    });
}

/// Moves the start of the thread's context.
fn cut_context(parts: &mut Parts, request: &BatchRequest, batch: &Batch, now: DateTime<Utc>) {
    let Some(cut) = &batch.context_cut else {
        return;
    };
    let (step, thread) = (&request.step, request.thread());
    parts.add(CutContext {
        conversation_id: &step.conversation_id,
        thread: thread.sub_agent().unwrap_or_default(),
        through_sequence: i64::from(cut.through_sequence),
        agent_execution_id: &step.agent_execution_id,
        step: i64::from(step.step),
        summary: &cut.summary,
        kept_message_ids: &cut.kept_message_ids,
        now,
    });
}

fn insert_events(parts: &mut Parts, step: &StepKey, batch: &Batch, now: DateTime<Utc>) {
    parts.add_rows(batch.events.iter().map(|event| InsertEvents {
        event_id: &event.id,
        conversation_id: &step.conversation_id,
        message_id: &event.message_id,
        event_type: event.event_type.as_str(),
        sequence_number: i64::from(event.sequence_number),
        batch_key: &batch.key,
        now,
        data_bytes: length(&event.data),
        event_data: &event.data,
    }));
}

/// Returns the number of bytes that a read of `data` returns.
fn length(data: &Json) -> i64 {
    i64::try_from(data.stored_len()).unwrap_or(i64::MAX)
}

fn insert_plans(parts: &mut Parts, step: &StepKey, batch: &Batch, now: DateTime<Utc>) {
    parts.add_rows(batch.plans.iter().map(|plan| InsertPlans {
        conversation_id: &step.conversation_id,
        plan_id: &plan.plan_id,
        message_id: &step.message_id,
        title: &plan.title,
        steps: &plan.steps,
        created_at: now,
        updated_at: now,
    }));
}
