//! Conversations and the messages they accept.

use async_trait::async_trait;
use chrono::TimeDelta;
use everturn_proto::words::execution_status;

use super::{
    Connection, Store, commit,
    dialect::{sql_error, words},
    lock::lock_visible_conversation,
    missing,
    removal::remove,
    write::insert_conversation,
};
use crate::{
    api::{
        Access, Conversation, Conversations, ListPage, ListQuery, NewConversation, NewMessage,
        QueuedMessage, Result, ResumePoint, TakenBy, UnfinishedTurn,
    },
    error::StoreError,
    rows::{ConversationRow, QueuedRow, ResumeRow, narrow, now},
    sql,
};

/// How long a deleted conversation is remembered: far longer than one attempt of an activity, the most that a worker
/// thought dead may still be at.
const REMEMBER_DELETED: TimeDelta = TimeDelta::days(1);

/// Conversations to forget with each that is deleted: more than one, so that their number falls.
const FORGET_AT_ONCE: i64 = 100;

#[async_trait]
impl Conversations for Store {
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>> {
        let row = self
            .in_time(async {
                let mut connection = self.single().await?;
                match insert_conversation(&mut connection, sql::INSERT_CONVERSATION, &new).await? {
                    Some(row) => Ok(Some(row)),
                    None => conversation(&mut connection, &new.access, &new.id).await,
                }
            })
            .await?;
        row.map(ConversationRow::conversation).transpose()
    }

    async fn conversation(&self, access: &Access, id: &str) -> Result<Option<Conversation>> {
        let row = self
            .in_time(async { conversation(&mut *self.single().await?, access, id).await })
            .await?;
        row.map(ConversationRow::conversation).transpose()
    }

    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage> {
        let text = match (&access.owner_id, &query.before) {
            (None, None) => sql::CONVERSATIONS_FIRST,
            (None, Some(_)) => sql::CONVERSATIONS_BEFORE,
            (Some(_), None) => sql::OWN_CONVERSATIONS_FIRST,
            (Some(_), Some(_)) => sql::OWN_CONVERSATIONS_BEFORE,
        };
        let mut select = sqlx::query_as(text).bind(&access.tenant_id);
        if let Some(owner_id) = &access.owner_id {
            select = select.bind(owner_id);
        }
        select = select.bind(i64::from(query.rows_to_read()));
        if let Some(place) = &query.before {
            select = select.bind(place.updated_at).bind(&place.id);
        }
        let rows: Vec<ConversationRow> = self
            .in_time(async { select.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        let rows: Vec<_> = rows
            .into_iter()
            .map(ConversationRow::conversation)
            .collect::<Result<_>>()?;
        Ok(query.page(rows))
    }

    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: &str,
    ) -> Result<Option<Conversation>> {
        let mut renamed: Vec<ConversationRow> = self
            .in_time(async {
                let rename = sqlx::query_as(sql::RENAME_CONVERSATION).bind(id);
                let rename = rename
                    .bind(&access.tenant_id)
                    .bind(&access.owner_id)
                    .bind(title);
                rename
                    .fetch_all(&mut *self.single().await?)
                    .await
                    .map_err(sql_error)
            })
            .await?;
        renamed.pop().map(ConversationRow::conversation).transpose()
    }

    async fn delete_conversation(&self, access: &Access, id: &str) -> Result<bool> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let is_there = lock_visible_conversation(&mut transaction, access, id)
                .await?
                .is_some();
            if is_there {
                remove(&mut transaction, &[id.to_owned()]).await?;
                remember_deleted(&mut transaction, id).await?;
            }
            commit(transaction).await?;
            Ok(is_there)
        })
        .await
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

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let is_withdrawn =
                withdraw_message(&mut transaction, access, conversation_id, message_id).await?;
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
        let query = sqlx::query_as(sql::RESUME_POINT)
            .bind(conversation_id)
            .bind(&access.tenant_id);
        let query = query
            .bind(&access.owner_id)
            .bind(i64::from(max_waiting.max(1)));
        let rows: Vec<ResumeRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        let Some(ResumeRow {
            running_message_id,
            checkpoint_step,
            has_begun,
            ..
        }) = rows.first()
        else {
            return Ok(None);
        };
        let checkpoint_step = checkpoint_step.map(narrow).transpose()?;
        let turn = running_message_id.clone().map(|message_id| UnfinishedTurn {
            message_id,
            checkpoint_step,
        });
        let has_begun = *has_begun;
        Ok(Some(ResumePoint {
            turn,
            has_begun,
            waiting: rows.into_iter().filter_map(|row| row.waiting_id).collect(),
        }))
    }
}

async fn conversation(
    connection: &mut Connection,
    access: &Access,
    id: &str,
) -> Result<Option<ConversationRow>> {
    let query = sqlx::query_as(sql::CONVERSATION)
        .bind(id)
        .bind(&access.tenant_id)
        .bind(&access.owner_id);
    query.fetch_optional(connection).await.map_err(sql_error)
}

/// So that no turn that is about to begin creates it again; forgets others, so that there is a bound.
async fn remember_deleted(connection: &mut Connection, id: &str) -> Result<()> {
    let now = now();
    sqlx::query(sql::INSERT_DELETED)
        .bind(id)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(sql_error)?;
    let forget = sqlx::query(words(sql::FORGET_DELETED))
        .bind(now - REMEMBER_DELETED)
        .bind(FORGET_AT_ONCE);
    forget.execute(connection).await.map_err(sql_error)?;
    Ok(())
}

/// The conversation's lock makes the count of waiting messages exact.
async fn queue_message(
    connection: &mut Connection,
    access: &Access,
    new: &NewMessage,
) -> Result<QueuedMessage> {
    let locked = lock_visible_conversation(connection, access, &new.conversation_id).await?;
    locked.ok_or_else(|| StoreError::not_found("conversation", &new.conversation_id))?;
    let inserted = sqlx::query(sql::QUEUE_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .bind(&new.content)
        .bind(now())
        .bind(i64::from(new.max_queued))
        .bind(&access.tenant_id)
        .bind(i64::from(new.max_turns))
        .execute(&mut *connection)
        .await
        .map_err(missing("conversation", &new.conversation_id))?;
    if inserted.rows_affected() == 1 {
        return Ok(QueuedMessage {
            message_id: new.message_id.clone(),
            is_new: true,
            turn: None,
        });
    }
    let stored: Option<QueuedRow> = sqlx::query_as(sql::QUEUED_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .bind(&new.content)
        .fetch_optional(&mut *connection)
        .await
        .map_err(sql_error)?;
    let Some(stored) = stored else {
        return Err(refusal(connection, new).await?);
    };
    if !stored.has_this_content {
        // An id that was used twice by mistake: the second message must not vanish in silence.
        let client_message_id = new.client_message_id.clone().unwrap_or(stored.id);
        return Err(StoreError::OtherContent { client_message_id });
    }
    let is_running = stored.turn_status.as_deref() == Some(execution_status::RUNNING);
    let turn = stored.turn_message_id.map(|message_id| TakenBy {
        message_id,
        is_running,
    });
    Ok(QueuedMessage {
        message_id: stored.id,
        is_new: false,
        turn,
    })
}

/// Which limit a message that was not stored has met.
async fn refusal(connection: &mut Connection, new: &NewMessage) -> Result<StoreError> {
    let count = sqlx::query_scalar(sql::COUNT_QUEUED).bind(&new.conversation_id);
    let queued: i64 = count.fetch_one(connection).await.map_err(sql_error)?;
    Ok(if queued >= i64::from(new.max_queued) {
        StoreError::QueueFull {
            limit: new.max_queued,
        }
    } else {
        StoreError::TooManyTurns {
            limit: new.max_turns,
        }
    })
}

/// The conversation's lock keeps a turn from taking the message meanwhile.
async fn withdraw_message(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    message_id: &str,
) -> Result<bool> {
    if lock_visible_conversation(connection, access, conversation_id)
        .await?
        .is_none()
    {
        return Ok(false);
    }
    let query = sqlx::query(sql::WITHDRAW_MESSAGE)
        .bind(conversation_id)
        .bind(message_id);
    Ok(query
        .execute(connection)
        .await
        .map_err(sql_error)?
        .rows_affected()
        == 1)
}
