//! Conversations. Their messages are in `messages.rs`.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::OnBusy;

use super::{
    Connection, Database, audit,
    dialect::words,
    key_of_caller,
    lock::lock_visible_conversation,
    messages,
    removal::remove,
    sql::{
        self, Select,
        conversations::{
            self, CONVERSATION, CONVERSATIONS_BEFORE, CONVERSATIONS_FIRST, INSERT_CONVERSATION,
            LAST_UPDATES, OWN_CONVERSATIONS_BEFORE, OWN_CONVERSATIONS_FIRST, RENAME_CONVERSATION,
        },
        removal::{FORGET_DELETED, INSERT_DELETED},
    },
    statement::Statement as _,
    statements,
};
use crate::{
    api::{
        Access, Conversation, Conversations, ListPage, ListQuery, ListedConversation,
        NewAuditEntry, NewConversation, NewMessage, QueuedMessage, Result, ResumePoint,
    },
    columns::now,
    error::StoreError,
    rows::conversations::resume_point,
};

/// How long the tombstone of a deleted conversation stays. The time is far longer than one attempt of an activity,
/// because a worker that is thought dead may still be busy with an attempt.
const REMEMBER_DELETED: TimeDelta = TimeDelta::days(1);

/// The most tombstones removed by one deletion of a conversation. The limit is above 1, so the number of tombstones
/// falls.
const FORGET_AT_ONCE: i64 = 100;

#[async_trait]
impl Conversations for Database {
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>> {
        self.in_time(async {
            let mut connection = self.single().await?;
            let id = new.id();
            let mut inserted = conversations::insert(INSERT_CONVERSATION, &id, &new, now())
                .fetch_all(&mut *connection)
                .await?;
            if let Some(created) = inserted.pop() {
                return Ok(Some(created));
            }
            let whole_tenant = Access::tenant(&new.access.tenant_id);
            let stored = sql::for_caller(CONVERSATION, &whole_tenant, &id);
            let stored: Option<Conversation> = stored.fetch_optional(&mut *connection).await?;
            let stored = stored.ok_or_else(|| {
                StoreError::Unavailable(
                    "the conversation was removed as it was created again".into(),
                )
            })?;
            Ok(Some(stored).filter(|stored| stored.is_seen_by(&new.access)))
        })
        .await
    }

    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>> {
        let id = access.id_of(name);
        let query = sql::for_caller(CONVERSATION, access, &id);
        self.in_time(async { Ok(query.fetch_optional(&mut *self.single().await?).await?) })
            .await
    }

    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage> {
        let select = select_page(access, query);
        let rows = self.read(select.fetch_all(self.reader())).await?;
        Ok(query.page(rows))
    }

    async fn last_updates(&self, callers: &[Access]) -> Result<Vec<Option<DateTime<Utc>>>> {
        let callers: Vec<_> = callers
            .iter()
            .map(|caller| (&caller.tenant_id, &caller.owner_id))
            .collect();
        let callers = serde_json::to_string(&callers)
            .map_err(|error| StoreError::Corrupt(format!("callers have no JSON form: {error}")))?;
        let query = sqlx::query_as(words(LAST_UPDATES)).bind(callers);
        let rows: Vec<(i64, Option<DateTime<Utc>>)> =
            self.read(query.fetch_all(self.reader())).await?;
        Ok(rows.into_iter().map(|(_, updated_at)| updated_at).collect())
    }

    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>> {
        let rename = sql::for_caller(RENAME_CONVERSATION, access, id);
        let rename = rename.bind(title.unwrap_or_default());
        let call = self.in_time(async { Ok(rename.fetch_all(&mut *self.single().await?).await?) });
        // On the heap, because the future contains the call's and the share's futures.
        let call = Box::pin(call);
        let mut renamed = self.in_lock_share(&key_of_caller(access, id), call).await?;
        Ok(renamed.pop())
    }

    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        entry: Option<&NewAuditEntry>,
    ) -> Result<bool> {
        let removal = self.removing(async |connection| {
            let is_there = lock_visible_conversation(connection, access, id).await?;
            if is_there {
                remove(connection, &[id.to_owned()]).await?;
                remember_deleted(connection, id).await?;
                if let Some(entry) = entry {
                    audit::append(connection, entry).await?;
                }
            }
            Ok(is_there)
        });
        // On the heap, because the future is large and would be copied into two surrounding futures.
        self.in_lock_share(&key_of_caller(access, id), Box::pin(removal))
            .await
    }

    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage> {
        if let Some(queued) = self.queue_as_read(access, &new).await? {
            return Ok(queued);
        }
        let key = key_of_caller(access, &new.conversation_id);
        self.locking(&key, async |connection| {
            messages::queue(connection, access, &new).await
        })
        .await
    }

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool> {
        let key = key_of_caller(access, conversation_id);
        self.locking(&key, async |connection| {
            messages::withdraw(connection, access, conversation_id, message_id).await
        })
        .await
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>> {
        let resume = statements::messages::ResumePoint {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            row_limit: i64::from(max_waiting.max(1)),
            reject: OnBusy::Reject.as_str(),
        };
        let query = resume.query_as()?;
        let rows = self.read(query.fetch_all(self.reader())).await?;
        Ok(resume_point(rows))
    }
}

fn select_page<'q>(access: &'q Access, query: &'q ListQuery) -> Select<'q, ListedConversation> {
    let text = match (&access.owner_id, &query.before) {
        (None, None) => CONVERSATIONS_FIRST,
        (None, Some(_)) => CONVERSATIONS_BEFORE,
        (Some(_), None) => OWN_CONVERSATIONS_FIRST,
        (Some(_), Some(_)) => OWN_CONVERSATIONS_BEFORE,
    };
    let mut select = sqlx::query_as(text).bind(&access.tenant_id);
    if let Some(owner_id) = &access.owner_id {
        select = select.bind(owner_id);
    }
    select = select.bind(i64::from(query.rows_to_read()));
    if let Some(cursor) = &query.before {
        select = select.bind(cursor.updated_at).bind(&cursor.id);
    }
    select
}

/// Writes a tombstone, so that a late turn does not create the conversation again. Removes some old tombstones to keep
/// their number bounded.
async fn remember_deleted(connection: &mut Connection, id: &str) -> Result<()> {
    let now = now();
    sqlx::query(INSERT_DELETED)
        .bind(id)
        .bind(now)
        .execute(&mut *connection)
        .await?;
    sqlx::query(words(FORGET_DELETED))
        .bind(now - REMEMBER_DELETED)
        .bind(FORGET_AT_ONCE)
        .execute(connection)
        .await?;
    Ok(())
}
