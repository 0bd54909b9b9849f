//! The event log, read. Every method is one statement, hence one snapshot of the file.

use async_trait::async_trait;

use super::{SqliteStore, error::sql_error};
use crate::{
    api::{EventPage, EventReader, ExecutionStatus, Result},
    rows::{EventRow, StatusRow, narrow},
    sql,
};

#[async_trait]
impl EventReader for SqliteStore {
    async fn events(&self, conversation_id: &str, from_sequence: u32, limit: u32) -> Result<EventPage> {
        let rows: Vec<EventRow> = sqlx::query_as(sql::EVENTS)
            .bind(conversation_id)
            .bind(i64::from(from_sequence))
            // One more than asked for says whether there are more.
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.read)
            .await
            .map_err(sql_error)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let events = rows.into_iter().take(limit).map(EventRow::event).collect::<Result<_>>()?;
        Ok(EventPage { events, has_more })
    }

    async fn execution_status(&self, conversation_id: &str) -> Result<Option<ExecutionStatus>> {
        let row: Option<StatusRow> = sqlx::query_as(sql::EXECUTION_STATUS)
            .bind(conversation_id)
            .fetch_optional(&self.read)
            .await
            .map_err(sql_error)?;
        row.map(|row| {
            let current_message_id = row.running_message_id.or(row.queued_message_id);
            Ok(ExecutionStatus {
                is_running: current_message_id.is_some(),
                last_sequence: narrow(row.last_sequence)?,
                current_message_id,
            })
        })
        .transpose()
    }
}
