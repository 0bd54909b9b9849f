//! Writes a batch, in a number of statements that does not depend on the number of its rows.

mod rows;
mod tools;

pub(super) use tools::insert_ended;

use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    words::{AgentExecutionStatus, MessageRole},
};
use sqlx::types::Json as Column;

use super::{
    Connection,
    dialect::{list, words},
    sql::{
        agent_executions::ADVANCE_EXECUTION,
        conversations::ADVANCE_CONVERSATION,
        events::INSERT_EVENTS,
        messages::{InsertTakenMessage, SET_TOOL_RESULTS, TAKE_MESSAGE},
        plans::{INSERT_PLANS, OR_UPDATE_PLANS},
        tools::OR_OBSERVE_TOOLS,
    },
};
use crate::{
    api::{Result, StepKey},
    batch::{AssistantRow, Batch, BatchRequest, TakenMessage},
};
use rows::insert_rows;

/// Writes every row of the batch, in the order of their foreign keys.
pub(super) async fn write_batch(
    connection: &mut Connection,
    request: &BatchRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if batch.events.is_empty() {
        return Ok(());
    }
    let step = &request.step;
    write_messages(connection, request, batch, now).await?;
    write_events(connection, step, batch, now).await?;
    tools::write_tools(connection, step, &batch.pending_tools, "", now).await?;
    tools::write_approval(connection, step, batch, now).await?;
    tools::write_tools(
        connection,
        step,
        &batch.observed_tools,
        OR_OBSERVE_TOOLS,
        now,
    )
    .await?;
    write_results(connection, step, batch).await?;
    write_plans(connection, step, batch, now).await?;
    tools::write_delegate_call_end(connection, step, batch, now).await?;
    sqlx::query(ADVANCE_CONVERSATION)
        .bind(&step.conversation_id)
        .bind(i64::from(batch.last_sequence))
        .bind(i64::from(batch.new_messages))
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}

/// Counts the batch's steps. If the batch ends the agent execution, writes that end, too.
pub(super) async fn advance_execution(
    connection: &mut Connection,
    request: &BatchRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    let end = batch.end.as_ref();
    let status = end.map_or(&AgentExecutionStatus::Running, |end| &end.status);
    sqlx::query(ADVANCE_EXECUTION)
        .bind(&request.step.agent_execution_id)
        .bind(i64::from(batch.steps))
        .bind(status.as_str())
        .bind(end.and_then(|end| end.error_code.as_ref()))
        .bind(end.map(|_| now))
        .execute(connection)
        .await?;
    Ok(())
}

async fn write_messages(
    connection: &mut Connection,
    request: &BatchRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if let Some(taken) = &batch.taken {
        take_message(connection, request, taken, now).await?;
    }
    if let Some(row) = &batch.assistant {
        insert_assistant(connection, request, row, now).await?;
    }
    Ok(())
}

/// Copies the results of a step into its assistant row, when none of its calls is open any more. A step with many large
/// results would otherwise be written anew with each of them.
async fn write_results(connection: &mut Connection, step: &StepKey, batch: &Batch) -> Result<()> {
    // Only one step at a time has open tools, so this loop makes one statement at the most.
    for observed in &batch.observed_steps {
        sqlx::query(words(SET_TOOL_RESULTS))
            .bind(&step.conversation_id)
            .bind(&observed.assistant_message_id)
            .bind(list(&observed.execution_ids))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Takes a user's message into the timeline, with its row when it has none yet.
async fn take_message(
    connection: &mut Connection,
    request: &BatchRequest,
    taken: &TakenMessage,
    now: DateTime<Utc>,
) -> Result<()> {
    let step = &request.step;
    let statement = match &taken.new_content {
        Some(content) => InsertTakenMessage {
            conversation_id: &step.conversation_id,
            id: &taken.id,
            role: MessageRole::User,
            agent_execution_id: &step.agent_execution_id,
            step: None,
            sequence_number: taken.sequence_number,
            now,
            sub_agent: request.thread().sub_agent(),
            content,
            tool_calls: &[],
        }
        .statement(),
        None => sqlx::query(TAKE_MESSAGE)
            .bind(&step.conversation_id)
            .bind(&taken.id)
            .bind(&step.agent_execution_id)
            .bind(i64::from(taken.sequence_number)),
    };
    statement.execute(connection).await?;
    Ok(())
}

async fn insert_assistant(
    connection: &mut Connection,
    request: &BatchRequest,
    row: &AssistantRow,
    now: DateTime<Utc>,
) -> Result<()> {
    let thread = request.thread();
    let insert = InsertTakenMessage {
        conversation_id: &request.step.conversation_id,
        id: &row.id,
        role: MessageRole::Assistant,
        agent_execution_id: &request.step.agent_execution_id,
        step: Some(row.step),
        sequence_number: row.sequence_number,
        now,
        sub_agent: thread.sub_agent(),
        content: &row.content,
        tool_calls: &row.tool_calls,
    };
    insert.statement().execute(connection).await?;
    Ok(())
}

async fn write_events(
    connection: &mut Connection,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    insert_rows(
        connection,
        INSERT_EVENTS,
        &batch.events,
        "",
        |row, event| {
            row.push_bind(&event.id)
                .push_bind(&step.conversation_id)
                .push_bind(&event.message_id)
                .push_bind(event.event_type.as_str())
                .push_bind(i64::from(event.sequence_number))
                .push_bind(&batch.key)
                .push_bind(now)
                .push_bind(length(&event.data))
                .push_bind(Column(&event.data));
        },
    )
    .await
}

/// Returns how many bytes a read of this returns.
fn length(data: &Json) -> i64 {
    i64::try_from(data.stored_len()).unwrap_or(i64::MAX)
}

async fn write_plans(
    connection: &mut Connection,
    step: &StepKey,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    let plans = &batch.plans;
    insert_rows(
        connection,
        INSERT_PLANS,
        plans,
        OR_UPDATE_PLANS,
        |row, plan| {
            row.push_bind(&step.conversation_id)
                .push_bind(&plan.plan_id)
                .push_bind(&step.message_id)
                .push_bind(&plan.title)
                .push_bind(Column(&plan.steps))
                .push_bind(now)
                .push_bind(now);
        },
    )
    .await
}
