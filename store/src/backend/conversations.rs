//! Conversations and the messages they accept.

use async_trait::async_trait;

use super::{
    Connection, Store, commit, dialect::sql_error, lock::lock_conversation, missing, write::insert_conversation,
};
use crate::{
    api::{Conversation, Conversations, ListPlace, NewConversation, NewMessage, QueuedMessage, Result},
    error::StoreError,
    rows::{ConversationRow, QUEUED, now},
    sql,
};

#[async_trait]
impl Conversations for Store {
    async fn create_conversation(&self, new: NewConversation) -> Result<Conversation> {
        let row = self
            .in_time(async {
                let mut connection = self.single().await?;
                match insert_conversation(&mut connection, &new).await? {
                    Some(row) => Ok(row),
                    None => conversation(&mut connection, &new.id)
                        .await?
                        .ok_or_else(|| StoreError::not_found("conversation", &new.id)),
                }
            })
            .await?;
        row.conversation()
    }

    async fn conversation(&self, id: &str) -> Result<Option<Conversation>> {
        let query = sqlx::query_as(sql::CONVERSATION).bind(id);
        let row: Option<ConversationRow> =
            self.in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) }).await?;
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
        let rows: Vec<ConversationRow> =
            self.in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) }).await?;
        rows.into_iter().map(ConversationRow::conversation).collect()
    }

    async fn queue_message(&self, new: NewMessage) -> Result<QueuedMessage> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let queued = queue_message(&mut transaction, &new).await?;
            commit(transaction).await?;
            Ok(queued)
        })
        .await
    }
}

async fn conversation(connection: &mut Connection, id: &str) -> Result<Option<ConversationRow>> {
    sqlx::query_as(sql::CONVERSATION).bind(id).fetch_optional(connection).await.map_err(sql_error)
}

/// The conversation's lock makes the count of waiting messages exact.
async fn queue_message(connection: &mut Connection, new: &NewMessage) -> Result<QueuedMessage> {
    let locked = lock_conversation(connection, &new.conversation_id).await?;
    locked.ok_or_else(|| StoreError::not_found("conversation", &new.conversation_id))?;
    let inserted = sqlx::query(sql::QUEUE_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .bind(&new.content)
        .bind(now())
        .bind(i64::from(new.max_queued))
        .execute(&mut *connection)
        .await
        .map_err(missing("conversation", &new.conversation_id))?;
    if inserted.rows_affected() == 1 {
        return Ok(QueuedMessage { message_id: new.message_id.clone(), is_new: true, is_waiting: true });
    }
    let stored: Option<(String, String)> = sqlx::query_as(sql::QUEUED_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    let (message_id, status) = stored.ok_or(StoreError::QueueFull { limit: new.max_queued })?;
    Ok(QueuedMessage { message_id, is_new: false, is_waiting: status == QUEUED })
}
