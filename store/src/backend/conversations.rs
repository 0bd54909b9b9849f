//! Conversations and the messages they accept.

use async_trait::async_trait;
use everturn_proto::words::execution_status;

use super::{
    Connection, Store, commit, dialect::sql_error, lock::lock_visible_conversation, missing, write::insert_conversation,
};
use crate::{
    api::{
        Access, Conversation, Conversations, ListPlace, NewConversation, NewMessage, QueuedMessage, Result,
        ResumePoint, TakenBy, UnfinishedTurn,
    },
    error::StoreError,
    rows::{ConversationRow, QueuedRow, ResumeRow, narrow, now},
    sql,
};

#[async_trait]
impl Conversations for Store {
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>> {
        let row = self
            .in_time(async {
                let mut connection = self.single().await?;
                match insert_conversation(&mut connection, &new).await? {
                    Some(row) => Ok(Some(row)),
                    None => conversation(&mut connection, &new.access, &new.id).await,
                }
            })
            .await?;
        row.map(ConversationRow::conversation).transpose()
    }

    async fn conversation(&self, access: &Access, id: &str) -> Result<Option<Conversation>> {
        let row = self.in_time(async { conversation(&mut *self.single().await?, access, id).await }).await?;
        row.map(ConversationRow::conversation).transpose()
    }

    async fn list_conversations(
        &self,
        access: &Access,
        before: Option<ListPlace>,
        limit: u32,
    ) -> Result<Vec<Conversation>> {
        let text = match (&access.owner_id, &before) {
            (None, None) => sql::CONVERSATIONS_FIRST,
            (None, Some(_)) => sql::CONVERSATIONS_BEFORE,
            (Some(_), None) => sql::OWN_CONVERSATIONS_FIRST,
            (Some(_), Some(_)) => sql::OWN_CONVERSATIONS_BEFORE,
        };
        let mut query = sqlx::query_as(text).bind(&access.tenant_id);
        if let Some(owner_id) = &access.owner_id {
            query = query.bind(owner_id);
        }
        query = query.bind(i64::from(limit));
        if let Some(place) = before {
            query = query.bind(place.updated_at).bind(place.id);
        }
        let rows: Vec<ConversationRow> =
            self.in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) }).await?;
        rows.into_iter().map(ConversationRow::conversation).collect()
    }

    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let queued = queue_message(&mut transaction, access, &new).await?;
            commit(transaction).await?;
            Ok(queued)
        })
        .await
    }

    async fn withdraw_message(&self, access: &Access, conversation_id: &str, message_id: &str) -> Result<bool> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let is_withdrawn = withdraw_message(&mut transaction, access, conversation_id, message_id).await?;
            commit(transaction).await?;
            Ok(is_withdrawn)
        })
        .await
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>> {
        let query = sqlx::query_as(sql::RESUME_POINT).bind(conversation_id).bind(&access.tenant_id);
        let query = query.bind(&access.owner_id).bind(i64::from(max_waiting.max(1)));
        let rows: Vec<ResumeRow> =
            self.in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) }).await?;
        let Some(ResumeRow { running_message_id, checkpoint_step, has_begun, .. }) = rows.first() else {
            return Ok(None);
        };
        let checkpoint_step = checkpoint_step.map(narrow).transpose()?;
        let turn = running_message_id.clone().map(|message_id| UnfinishedTurn { message_id, checkpoint_step });
        let has_begun = *has_begun;
        Ok(Some(ResumePoint { turn, has_begun, waiting: rows.into_iter().filter_map(|row| row.waiting_id).collect() }))
    }
}

async fn conversation(connection: &mut Connection, access: &Access, id: &str) -> Result<Option<ConversationRow>> {
    let query = sqlx::query_as(sql::CONVERSATION).bind(id).bind(&access.tenant_id).bind(&access.owner_id);
    query.fetch_optional(connection).await.map_err(sql_error)
}

/// The conversation's lock makes the count of waiting messages exact.
async fn queue_message(connection: &mut Connection, access: &Access, new: &NewMessage) -> Result<QueuedMessage> {
    let locked = lock_visible_conversation(connection, access, &new.conversation_id).await?;
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
        return Ok(QueuedMessage { message_id: new.message_id.clone(), is_new: true, turn: None });
    }
    let stored: Option<QueuedRow> = sqlx::query_as(sql::QUEUED_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    let stored = stored.ok_or(StoreError::QueueFull { limit: new.max_queued })?;
    let is_running = stored.turn_status.as_deref() == Some(execution_status::RUNNING);
    let turn = stored.turn_message_id.map(|message_id| TakenBy { message_id, is_running });
    Ok(QueuedMessage { message_id: stored.id, is_new: false, turn })
}

/// The conversation's lock keeps a turn from taking the message meanwhile.
async fn withdraw_message(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    message_id: &str,
) -> Result<bool> {
    if lock_visible_conversation(connection, access, conversation_id).await?.is_none() {
        return Ok(false);
    }
    let query = sqlx::query(sql::WITHDRAW_MESSAGE).bind(conversation_id).bind(message_id);
    Ok(query.execute(connection).await.map_err(sql_error)?.rows_affected() == 1)
}
