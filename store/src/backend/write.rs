//! Writes a batch: a constant number of statements, whatever the number of its rows.

use chrono::{DateTime, Utc};
use everturn_proto::{
    ids,
    turn::{SaveRequest, ToolCall},
    words::execution_status,
};
use sqlx::{QueryBuilder, types::Json as Column};

use super::{
    Connection,
    dialect::{Db, sql_error},
};
use crate::{
    api::{NewConversation, Result},
    batch::{Batch, NewEvent, ToolRow},
    rows::{ASSISTANT, ConversationRow, USER, now},
    sql,
};

/// Rows of one insert: 24 columns of these stay below SQLite's 32 766 parameters and PostgreSQL's 65 535. Only a tool that emits more
/// than this many events of its own needs a second insert.
const ROWS_AN_INSERT: usize = 1000;

/// An insert of at most this many rows is kept prepared, one of more is prepared each time: there are as many texts
/// as numbers of rows, and a connection keeps a hundred or so.
const ROWS_KEPT_PREPARED: usize = 8;

/// What a user's message has.
const NO_CALLS: &[ToolCall] = &[];

/// Inserts a conversation, by one of the texts for that; `None` when it inserts nothing.
pub(super) async fn insert_conversation(
    connection: &mut Connection,
    text: &'static str,
    new: &NewConversation,
) -> Result<Option<ConversationRow>> {
    let mut inserted: Vec<ConversationRow> = sqlx::query_as(text)
        .bind(&new.id)
        .bind(&new.access.tenant_id)
        .bind(new.access.owner_id.as_deref().unwrap_or_default())
        .bind(&new.agent)
        .bind(&new.title)
        .bind(now())
        .fetch_all(connection)
        .await
        .map_err(sql_error)?;
    Ok(inserted.pop())
}

/// Writes every row of the batch, in the order of their foreign keys.
pub(super) async fn write_batch(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if batch.events.is_empty() {
        return Ok(());
    }
    write_messages(connection, request, batch, now).await?;
    write_events(connection, request, batch, now).await?;
    write_tools(connection, request, &batch.pending_tools, "", now).await?;
    write_approval(connection, request, batch, now).await?;
    write_tools(
        connection,
        request,
        &batch.observed_tools,
        sql::OR_OBSERVE_TOOLS,
        now,
    )
    .await?;
    write_plans(connection, request, batch, now).await?;
    write_delegation_end(connection, request, batch, now).await?;
    sqlx::query(sql::ADVANCE_CONVERSATION)
        .bind(&request.conversation_id)
        .bind(i64::from(batch.last_sequence))
        .bind(i64::from(batch.new_messages))
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(sql_error)?;
    Ok(())
}

/// Counts the batch's steps and, with a terminal batch, ends the execution.
pub(super) async fn advance_execution(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    let (status, error_code, finished_at) = match &batch.end {
        Some(end) => (end.status.as_str(), end.error_code.as_ref(), Some(now)),
        None => (execution_status::RUNNING, None, None),
    };
    sqlx::query(sql::ADVANCE_EXECUTION)
        .bind(&request.agent_execution_id)
        .bind(i64::from(batch.steps))
        .bind(status)
        .bind(error_code)
        .bind(finished_at)
        .execute(connection)
        .await
        .map_err(sql_error)?;
    Ok(())
}

async fn write_messages(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    let insert = || sqlx::query(sql::INSERT_TAKEN_MESSAGE).bind(&request.conversation_id);
    let thread = ids::thread(
        &request.conversation_id,
        &request.message_id,
        &request.agent_execution_id,
    );
    if let Some(taken) = &batch.taken {
        let sequence = i64::from(taken.sequence_number);
        let execution = &request.agent_execution_id;
        let query = match &taken.new_content {
            Some(content) => insert()
                .bind(&taken.id)
                .bind(USER)
                .bind(execution)
                .bind(None::<i64>)
                .bind(sequence)
                .bind(now)
                .bind(thread)
                .bind(content)
                .bind(Column(NO_CALLS)),
            None => sqlx::query(sql::TAKE_MESSAGE)
                .bind(&request.conversation_id)
                .bind(&taken.id)
                .bind(execution)
                .bind(sequence),
        };
        query.execute(&mut *connection).await.map_err(sql_error)?;
    }
    if let Some(row) = &batch.assistant {
        let query = insert()
            .bind(&row.id)
            .bind(ASSISTANT)
            .bind(&request.agent_execution_id);
        let query = query
            .bind(i64::from(row.step))
            .bind(i64::from(row.sequence_number))
            .bind(now);
        query
            .bind(thread)
            .bind(&row.content)
            .bind(Column(&row.tool_calls))
            .execute(&mut *connection)
            .await
            .map_err(sql_error)?;
    }
    // One step at a time has tools open, so this is one statement.
    for results in &batch.results {
        sqlx::query(sql::SET_TOOL_RESULTS)
            .bind(&request.conversation_id)
            .bind(&results.assistant_message_id)
            .bind(Column(&results.tool_results))
            .execute(&mut *connection)
            .await
            .map_err(sql_error)?;
    }
    Ok(())
}

async fn write_events(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    for events in batch.events.chunks(ROWS_AN_INSERT) {
        let mut query = QueryBuilder::<Db>::new(sql::INSERT_EVENTS);
        query.push_values(events, |mut row, event: &NewEvent| {
            row.push_bind(&event.id)
                .push_bind(&request.conversation_id)
                .push_bind(&event.message_id)
                .push_bind(&event.event_type)
                .push_bind(i64::from(event.sequence_number))
                .push_bind(&batch.key)
                .push_bind(now)
                .push_bind(Column(&event.data));
        });
        let insert = query.build().persistent(events.len() <= ROWS_KEPT_PREPARED);
        insert.execute(&mut *connection).await.map_err(sql_error)?;
    }
    Ok(())
}

async fn write_tools(
    connection: &mut Connection,
    request: &SaveRequest,
    tools: &[ToolRow],
    on_conflict: &'static str,
    now: DateTime<Utc>,
) -> Result<()> {
    for tools in tools.chunks(ROWS_AN_INSERT) {
        let mut query = QueryBuilder::<Db>::new(sql::INSERT_TOOLS);
        query.push_values(tools, |mut row, tool: &ToolRow| {
            let (call, end) = (&tool.record.call, tool.record.end.as_ref());
            row.push_bind(&request.conversation_id)
                .push_bind(&call.execution_id)
                .push_bind(&request.message_id)
                .push_bind(&request.agent_execution_id)
                .push_bind(i64::from(tool.step))
                .push_bind(i64::from(tool.call_index))
                .push_bind(&call.call_id)
                .push_bind(&call.tool_name)
                .push_bind(&call.effect)
                .push_bind(i64::from(call.timeout_ms))
                .push_bind(&tool.record.status)
                .push_bind(end.is_some_and(|end| end.is_error))
                .push_bind(i64::from(end.map_or(0, |end| end.duration_ms)))
                .push_bind(tool.observed_sequence.map(i64::from))
                .push_bind(now)
                .push_bind(end.map(|_| now))
                .push_bind(&call.kind)
                .push_bind(&tool.record.approval)
                .push_bind(&call.input_hash)
                .push_bind(tool.expires_at)
                .push_bind(Column(&call.signatures))
                .push_bind(Column(call.tool_input.clone().unwrap_or_default()))
                .push_bind(Column(end.map_or(&[][..], |end| &end.events)))
                .push_bind(end.map(|end| Column(&end.result)));
        });
        query.push(on_conflict);
        let insert = query.build().persistent(tools.len() <= ROWS_KEPT_PREPARED);
        insert.execute(&mut *connection).await.map_err(sql_error)?;
    }
    Ok(())
}

/// The approval that was given. Denied and expired ones are written with their observe.
async fn write_approval(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if let Some(tool) = &batch.approved_tool {
        let call = &tool.record.call;
        sqlx::query(sql::APPROVE_TOOL)
            .bind(&request.conversation_id)
            .bind(&call.execution_id)
            .bind(&tool.record.approval)
            .bind(&call.input_hash)
            .bind(tool.expires_at)
            .bind(Column(call.tool_input.clone().unwrap_or_default()))
            .execute(&mut *connection)
            .await
            .map_err(sql_error)?;
    }
    if let Some((assistant_message_id, calls)) = &batch.edited_calls {
        sqlx::query(sql::SET_TOOL_CALLS)
            .bind(&request.conversation_id)
            .bind(assistant_message_id)
            .bind(Column(calls))
            .execute(&mut *connection)
            .await
            .map_err(sql_error)?;
    }
    if let Some(tool_name) = &batch.granted_tool {
        sqlx::query(sql::INSERT_GRANT)
            .bind(&request.conversation_id)
            .bind(tool_name)
            .bind(now)
            .execute(connection)
            .await
            .map_err(sql_error)?;
    }
    Ok(())
}

/// The end of the call that started this sub-agent.
async fn write_delegation_end(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    if let Some((execution_id, end)) = &batch.delegation_end {
        sqlx::query(sql::END_DELEGATION)
            .bind(&request.conversation_id)
            .bind(execution_id)
            .bind(&end.status)
            .bind(end.is_error)
            .bind(i64::from(end.duration_ms))
            .bind(now)
            .bind(Column(&end.result))
            .bind(end.full_result.as_ref().map(Column))
            .execute(connection)
            .await
            .map_err(sql_error)?;
    }
    Ok(())
}

async fn write_plans(
    connection: &mut Connection,
    request: &SaveRequest,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<()> {
    for plans in batch.plans.chunks(ROWS_AN_INSERT) {
        let mut query = QueryBuilder::<Db>::new(sql::INSERT_PLANS);
        query.push_values(plans, |mut row, plan| {
            row.push_bind(&request.conversation_id)
                .push_bind(&plan.plan_id)
                .push_bind(&request.message_id)
                .push_bind(&plan.title)
                .push_bind(Column(&plan.steps))
                .push_bind(now)
                .push_bind(now);
        });
        query.push(sql::OR_UPDATE_PLANS);
        let insert = query.build().persistent(plans.len() <= ROWS_KEPT_PREPARED);
        insert.execute(&mut *connection).await.map_err(sql_error)?;
    }
    Ok(())
}
