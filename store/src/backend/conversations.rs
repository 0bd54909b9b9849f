//! Implements `Conversations`. Their messages are in `messages.rs`.

use async_trait::async_trait;
use chrono::TimeDelta;
use everturn_proto::words::{CheckpointType, OnBusy};
use sqlx::query::QueryAs;
use uuid::Uuid;

use super::{
    Connection, Database, audit,
    dialect::{Arguments, Db},
    key_of_caller,
    list_changes::{self, Change},
    lock::lock_visible,
    removal::remove_or_hide,
    statement::Statement as _,
    statements::{
        conversations::{
            ChangeConversation, Conversation as SelectConversation, ConversationsBefore,
            ConversationsFirst, InsertConversation, OwnConversationsBefore, OwnConversationsFirst,
            ShownConversation as SelectShown, WaitingConversations,
        },
        list_changes::ListVersions,
        messages::ResumePoint as SelectResumePoint,
        removal::{ForgetDeleted, InsertDeleted},
    },
};
use crate::{
    api::{
        Access, Conversation, ConversationChange, Conversations, ListPage, ListQuery, ListVersion,
        ListedConversation, NewAuditEntry, NewConversation, Result, ResumePoint, ShownConversation,
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
        self.together(async |connection| {
            let (id, now) = (new.id(), now());
            let Change {
                slot,
                first_version,
            } = Change::of(&id, now);
            let insert = InsertConversation {
                conversation_id: &id,
                tenant_id: &new.access.tenant_id,
                owner: new.access.owner_id.as_deref().unwrap_or_default(),
                agent: &new.agent,
                title: new.title.as_deref().unwrap_or_default(),
                model: new.model.as_deref().unwrap_or_default(),
                metadata: &new.metadata,
                now,
                log_id: &new_log_id(),
                slot,
                first_version,
            };
            let mut inserted = insert.query_as()?.fetch_all(&mut *connection).await?;
            if let Some(created) = inserted.pop() {
                list_changes::note_beside(connection, &id).await?;
                return Ok(Some(created));
            }
            let whole_tenant = Access::tenant(&new.access.tenant_id);
            let stored = select(&whole_tenant, &id).query_as()?;
            let stored: Option<Conversation> = stored.fetch_optional(connection).await?;
            let stored = stored.ok_or_else(|| {
                // Or the conversation was removed during its second creation.
                StoreError::Unavailable(
                    "the rows of a removed conversation with this id are still being removed"
                        .into(),
                )
            })?;
            Ok(Some(stored).filter(|stored| stored.is_seen_by(&new.access)))
        })
        .await
    }

    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>> {
        let id = access.id_of(name);
        let query = select(access, &id).query_as()?;
        self.in_time(async { Ok(query.fetch_optional(&mut *self.single().await?).await?) })
            .await
    }

    async fn shown_conversation(
        &self,
        access: &Access,
        name: &str,
    ) -> Result<Option<ShownConversation>> {
        let select = SelectShown {
            conversation_id: &access.id_of(name),
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            type_llm_complete: CheckpointType::LlmComplete.as_str(),
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage> {
        let select = select_page(access, query)?;
        let rows = self.read(select.fetch_all(self.reader())).await?;
        Ok(query.page(rows))
    }

    async fn list_versions(&self, callers: &[Access]) -> Result<Vec<ListVersion>> {
        let callers: Vec<_> = callers
            .iter()
            .map(|caller| (&caller.tenant_id, &caller.owner_id))
            .collect();
        let callers = serde_json::to_string(&callers)
            .map_err(|error| StoreError::Corrupt(format!("callers have no JSON form: {error}")))?;
        let query = ListVersions { callers: &callers }.query_as()?;
        let rows: Vec<(i64, i64)> = self.read(query.fetch_all(self.reader())).await?;
        Ok(rows
            .into_iter()
            .map(|(_, version)| ListVersion(version))
            .collect())
    }

    async fn change_conversation(
        &self,
        access: &Access,
        id: &str,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>> {
        let Change {
            slot,
            first_version,
        } = Change::of(id, now());
        let change = ChangeConversation {
            conversation_id: id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            title: change.title.as_deref(),
            model: change.model.as_deref(),
            metadata: change.metadata.as_ref(),
            slot,
            first_version,
        };
        let change = change.query_as()?;
        let call = self.together(async |connection| {
            let changed: Option<Conversation> = change.fetch_all(&mut *connection).await?.pop();
            if changed.is_some() {
                list_changes::note_beside(connection, id).await?;
            }
            Ok(changed)
        });
        // On the heap, because the future contains the call's and the share's futures.
        let call = Box::pin(call);
        self.in_lock_share(&key_of_caller(access, id), call).await
    }

    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        entry: Option<&NewAuditEntry>,
    ) -> Result<bool> {
        let removal = self.removing(async |connection| {
            let Some(events) = lock_visible(connection, access, id).await? else {
                return Ok(false);
            };
            remove_or_hide(connection, id, events).await?;
            remember_deleted(connection, id).await?;
            if let Some(entry) = entry {
                audit::append(connection, entry).await?;
            }
            Ok(true)
        });
        // On the heap, because the future is large and would be copied into two surrounding futures.
        self.in_lock_share(&key_of_caller(access, id), Box::pin(removal))
            .await
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>> {
        let resume = SelectResumePoint {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            row_limit: i64::from(max_waiting.max(1)),
            reject: OnBusy::Reject.as_str(),
            interrupt: OnBusy::Interrupt.as_str(),
        };
        let query = resume.query_as()?;
        let rows = self.read(query.fetch_all(self.reader())).await?;
        Ok(resume_point(rows))
    }
}

/// Returns the id of the log of a new conversation.
pub(super) fn new_log_id() -> String {
    format!("log_{}", Uuid::now_v7().simple())
}

fn select<'a>(access: &'a Access, conversation_id: &'a str) -> SelectConversation<'a> {
    SelectConversation {
        conversation_id,
        tenant_id: &access.tenant_id,
        owner_id: access.owner_id.as_deref(),
    }
}

fn select_page(
    access: &Access,
    query: &ListQuery,
) -> sqlx::Result<QueryAs<'static, Db, ListedConversation, Arguments>> {
    let (tenant_id, row_limit) = (access.tenant_id.as_str(), i64::from(query.rows_to_read()));
    let before = query
        .before
        .as_ref()
        .map(|cursor| (cursor.active_at, cursor.id.as_str()));
    if query.filter.is_of_waiting() {
        return WaitingConversations {
            tenant_id,
            owner_id: access.owner_id.as_deref(),
            before_active_at: before.map(|(active_at, _)| active_at),
            before_id: before.map(|(_, id)| id).unwrap_or_default(),
            row_limit,
        }
        .query_as();
    }
    match (access.owner_id.as_deref(), before) {
        (None, None) => ConversationsFirst {
            tenant_id,
            row_limit,
        }
        .query_as(),
        (None, Some((before_active_at, before_id))) => ConversationsBefore {
            tenant_id,
            row_limit,
            before_active_at,
            before_id,
        }
        .query_as(),
        (Some(owner_id), None) => OwnConversationsFirst {
            tenant_id,
            owner_id,
            row_limit,
        }
        .query_as(),
        (Some(owner_id), Some((before_active_at, before_id))) => OwnConversationsBefore {
            tenant_id,
            owner_id,
            row_limit,
            before_active_at,
            before_id,
        }
        .query_as(),
    }
}

/// Writes a tombstone, so that a late turn does not create the conversation again. Removes some old tombstones to keep
/// their number bounded.
async fn remember_deleted(connection: &mut Connection, id: &str) -> Result<()> {
    let now = now();
    let insert = InsertDeleted {
        conversation_id: id,
        now,
    };
    insert.query()?.execute(&mut *connection).await?;
    let forget = ForgetDeleted {
        before: now - REMEMBER_DELETED,
        row_limit: FORGET_AT_ONCE,
    };
    forget.query()?.execute(connection).await?;
    Ok(())
}
