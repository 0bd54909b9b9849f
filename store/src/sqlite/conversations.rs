//! Conversations and the messages they accept.

use async_trait::async_trait;

use super::{
    SqliteStore, commit,
    error::{missing, sql_error},
};
use crate::{
    api::{Conversation, Conversations, ListPlace, NewConversation, NewMessage, QueuedMessage, Result},
    error::StoreError,
    rows::{ConversationRow, QUEUED, now},
    sql,
};

#[async_trait]
impl Conversations for SqliteStore {
    async fn create_conversation(&self, new: NewConversation) -> Result<Conversation> {
        let mut transaction = self.begin().await?;
        sqlx::query(sql::INSERT_CONVERSATION)
            .bind(&new.id)
            .bind(&new.tenant_id)
            .bind(&new.agent)
            .bind(&new.title)
            .bind(now())
            .execute(&mut *transaction)
            .await
            .map_err(sql_error)?;
        let row: ConversationRow =
            sqlx::query_as(sql::CONVERSATION).bind(&new.id).fetch_one(&mut *transaction).await.map_err(sql_error)?;
        commit(transaction).await?;
        row.conversation()
    }

    async fn conversation(&self, id: &str) -> Result<Option<Conversation>> {
        let row: Option<ConversationRow> =
            sqlx::query_as(sql::CONVERSATION).bind(id).fetch_optional(&self.read).await.map_err(sql_error)?;
        row.map(ConversationRow::conversation).transpose()
    }

    async fn list_conversations(
        &self,
        tenant_id: &str,
        before: Option<ListPlace>,
        limit: u32,
    ) -> Result<Vec<Conversation>> {
        let text = if before.is_some() { sql::CONVERSATIONS_BEFORE } else { sql::CONVERSATIONS_FIRST };
        let mut query = sqlx::query_as(text).bind(tenant_id).bind(i64::from(limit));
        if let Some(place) = before {
            query = query.bind(place.updated_at).bind(place.id);
        }
        let rows: Vec<ConversationRow> = query.fetch_all(&self.read).await.map_err(sql_error)?;
        rows.into_iter().map(ConversationRow::conversation).collect()
    }

    async fn queue_message(&self, new: NewMessage) -> Result<QueuedMessage> {
        let mut transaction = self.begin().await?;
        let inserted = sqlx::query(sql::QUEUE_MESSAGE)
            .bind(&new.conversation_id)
            .bind(&new.message_id)
            .bind(&new.client_message_id)
            .bind(&new.content)
            .bind(now())
            .bind(i64::from(new.max_queued))
            .execute(&mut *transaction)
            .await
            .map_err(missing("conversation", &new.conversation_id))?;
        if inserted.rows_affected() == 1 {
            commit(transaction).await?;
            return Ok(QueuedMessage { message_id: new.message_id, is_new: true, is_waiting: true });
        }
        let stored: Option<(String, String)> = sqlx::query_as(sql::QUEUED_MESSAGE)
            .bind(&new.conversation_id)
            .bind(&new.message_id)
            .bind(&new.client_message_id)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(sql_error)?;
        let (message_id, status) = stored.ok_or(StoreError::QueueFull { limit: new.max_queued })?;
        Ok(QueuedMessage { message_id, is_new: false, is_waiting: status == QUEUED })
    }
}
