//! The event log, read. Every method is one statement, hence one snapshot of the database.

use async_trait::async_trait;

use super::{
    Store,
    dialect::{list, sql_error, words},
};
use crate::{
    api::{Access, ConversationStatus, EventPage, EventReader, Result},
    rows::{EventRow, StatusRow, narrow},
    sql,
};

#[async_trait]
impl EventReader for Store {
    async fn events(
        &self,
        access: &Access,
        conversation_id: &str,
        from_sequence: u32,
        limit: u32,
    ) -> Result<EventPage> {
        // One more than asked for says whether there are more.
        let query = sqlx::query_as(sql::EVENTS)
            .bind(conversation_id)
            .bind(i64::from(from_sequence));
        let query = query
            .bind(i64::from(limit) + 1)
            .bind(&access.tenant_id)
            .bind(&access.owner_id);
        let rows: Vec<EventRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let events = rows
            .into_iter()
            .take(limit)
            .map(EventRow::event)
            .collect::<Result<_>>()?;
        Ok(EventPage { events, has_more })
    }

    async fn conversation_status(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationStatus>> {
        let query = sqlx::query_as(sql::CONVERSATION_STATUS).bind(conversation_id);
        let query = query.bind(&access.tenant_id).bind(&access.owner_id);
        let row: Option<StatusRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(|row| {
            let current_message_id = row.running_message_id.or(row.queued_message_id);
            Ok(ConversationStatus {
                is_running: current_message_id.is_some(),
                last_sequence: narrow(row.last_sequence)?,
                current_message_id,
            })
        })
        .transpose()
    }

    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(String, u32)>> {
        if conversation_ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query_as(words(sql::LAST_SEQUENCES)).bind(list(conversation_ids));
        let rows: Vec<(String, i64)> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        rows.into_iter()
            .map(|(id, last_sequence)| Ok((id, narrow(last_sequence)?)))
            .collect()
    }
}
