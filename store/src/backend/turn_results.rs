//! Reads the results of turns, and the calls of agents over MCP.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{AgentExecutionStatus, EventType};
use sqlx::FromRow;

use super::{
    Database,
    statement::Statement as _,
    statements::turn_results::{EndOfTurn, FindCall, ListCalls, TurnOfMessage},
};
use crate::{
    api::{Access, McpCall, McpCallCursor, Result, TurnResult, TurnResults, TurnState},
    batch,
    rows::conversations::EventRow,
};

/// The types of events that end a turn.
const END_TYPES: [EventType; 3] = [EventType::Complete, EventType::Error, EventType::Cancelled];

/// The most events that are read for the batch that ends a turn: more than the open calls of a step can have.
const MAX_END_EVENTS: i64 = 10_000;

/// A message with the turn that took the message.
#[derive(FromRow)]
struct TurnRow {
    created_at: DateTime<Utc>,
    is_waiting: bool,
    agent_execution_id: Option<String>,
    turn_message_id: Option<String>,
    status: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

#[async_trait]
impl TurnResults for Database {
    async fn turn_result(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<Option<TurnResult>> {
        let select = TurnOfMessage {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            message_id,
        };
        let query = select.query_as()?;
        let row: Option<TurnRow> = self.read(query.fetch_optional(self.reader())).await?;
        let Some(row) = row else { return Ok(None) };
        let created_at = row.created_at;
        let state = self.state_of(conversation_id, row).await?;
        Ok(Some(TurnResult { created_at, state }))
    }

    async fn mcp_call(&self, access: &Access, client_message_id: &str) -> Result<Option<McpCall>> {
        let select = FindCall {
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            client_message_id,
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn mcp_calls(
        &self,
        access: &Access,
        after: Option<&McpCallCursor>,
        limit: u32,
    ) -> Result<Vec<McpCall>> {
        let select = ListCalls {
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            // No message is from the future of year 9999.
            before: after.map_or(FAR_FUTURE, |after| after.created_at),
            before_id: after.map_or("", |after| &after.message_id),
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }
}

/// A time behind the age of every message.
const FAR_FUTURE: DateTime<Utc> = match DateTime::from_timestamp_secs(253_402_300_799) {
    Some(time) => time,
    None => DateTime::<Utc>::MAX_UTC,
};

impl Database {
    /// Returns the state of a message's turn, with the last events of an ended turn.
    async fn state_of(&self, conversation_id: &str, row: TurnRow) -> Result<TurnState> {
        let (Some(agent_execution_id), Some(turn_message_id), Some(status)) =
            (row.agent_execution_id, row.turn_message_id, row.status)
        else {
            return Ok(TurnState::Waiting);
        };
        let status = AgentExecutionStatus::from(status);
        let (false, Some(finished_at)) = (row.is_waiting, row.finished_at) else {
            return Ok(TurnState::Running {
                turn_message_id,
                started_at: row.started_at.unwrap_or(row.created_at),
            });
        };
        let batch_key = batch::end_key(&turn_message_id, &agent_execution_id);
        let select = EndOfTurn {
            conversation_id,
            first_event_id: &batch::event_id(conversation_id, &batch_key, 0),
            most_events: MAX_END_EVENTS,
            batch_key: &batch_key,
            assistant_message: EventType::AssistantMessage.as_str(),
            end_types: &END_TYPES.map(|event_type| event_type.as_str().to_owned()),
        };
        let query = select.query_as()?;
        let rows: Vec<EventRow> = self.read(query.fetch_all(self.reader())).await?;
        let rows = rows.into_iter();
        Ok(TurnState::Ended {
            turn_message_id,
            status,
            error_code: row.error_code,
            error_message: row.error_message,
            finished_at,
            events: rows.map(|row| row.into_event(conversation_id)).collect(),
        })
    }
}
