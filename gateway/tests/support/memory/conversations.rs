//! Conversations and the messages that they accept.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_store::{
    Access, Conversation, Conversations, ListPage, ListQuery, ListedConversation, MessageQueue,
    Missing, NewAuditEntry, NewConversation, NewMessage, QueuedMessage, ResumePoint, StoreError,
};

use super::{MemoryStore, Result};

#[async_trait]
impl Conversations for MemoryStore {
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>> {
        let access = new.access.clone();
        let conversation = self.open()?.create(new);
        Ok(Some(conversation).filter(|row| row.is_seen_by(&access)))
    }

    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>> {
        let tables = self.open()?;
        Ok(tables
            .conversations
            .get(&access.id_of(name))
            .filter(|row| row.is_seen_by(access))
            .cloned())
    }

    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage> {
        let mut tables = self.open()?;
        tables.list_reads += 1;
        let mut rows: Vec<_> = tables
            .conversations
            .values()
            .filter(|row| access.sees(&row.tenant_id, row.owner_id.as_deref()))
            .cloned()
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.cursor()));
        rows.retain(|row| {
            query
                .before
                .as_ref()
                .is_none_or(|before| row.cursor() < *before)
        });
        rows.truncate(query.rows_to_read() as usize);
        let rows = rows.into_iter().map(|conversation| {
            let activity = tables.activities.get(&conversation.id).cloned();
            ListedConversation {
                activity: activity.unwrap_or_default(),
                conversation,
            }
        });
        Ok(query.page(rows))
    }

    async fn last_updates(&self, callers: &[Access]) -> Result<Vec<Option<DateTime<Utc>>>> {
        let tables = self.open()?;
        let newest = |caller: &Access| {
            let rows = tables.conversations.values();
            let seen = rows.filter(|row| caller.sees(&row.tenant_id, row.owner_id.as_deref()));
            seen.map(|row| row.updated_at).max()
        };
        Ok(callers.iter().map(newest).collect())
    }

    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>> {
        let mut tables = self.open()?;
        if !tables.shows(access, id) {
            return Ok(None);
        }
        Ok(tables.conversations.get_mut(id).map(|row| {
            row.title = title.map(str::to_owned);
            row.clone()
        }))
    }

    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        audit: Option<&NewAuditEntry>,
    ) -> Result<bool> {
        let mut tables = self.open()?;
        let is_there = tables.shows(access, id) && tables.conversations.remove(id).is_some();
        if is_there {
            tables.events.remove(id);
            tables.messages.retain(|row| row.conversation_id != id);
            *tables.removed.entry(id.to_owned()).or_default() += 1;
            tables.audit.extend(audit.cloned());
        }
        Ok(is_there)
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>> {
        let tables = self.open()?;
        let point = tables
            .resume_point
            .clone()
            .filter(|_| tables.shows(access, conversation_id));
        let limited = |ids: Vec<String>| ids.into_iter().take(max_waiting as usize).collect();
        Ok(point.map(|point| ResumePoint {
            waiting: limited(point.waiting),
            ..point
        }))
    }
}

#[async_trait]
impl MessageQueue for MemoryStore {
    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage> {
        let mut tables = self.open()?;
        let id = &new.conversation_id;
        if !tables.conversations.contains_key(id) || !tables.shows(access, id) {
            return Err(StoreError::not_found(
                Missing::Conversation,
                new.conversation_id,
            ));
        }
        let same = |row: &&NewMessage| {
            row.conversation_id == new.conversation_id
                && new.client_message_id.is_some()
                && row.client_message_id == new.client_message_id
        };
        if let Some(stored) = tables.messages.iter().find(same) {
            if stored.content != new.content {
                let client_message_id = new.client_message_id.unwrap_or_default();
                return Err(StoreError::OtherContent { client_message_id });
            }
            let message_id = stored.message_id.clone();
            let turn = tables
                .taken
                .iter()
                .find(|(taken, _)| *taken == message_id)
                .map(|(_, by)| by.clone());
            return Ok(QueuedMessage {
                message_id,
                is_new: false,
                turn,
                has_others: tables.has_others,
            });
        }
        if tables.messages.len() - tables.taken.len() >= new.max_queued as usize {
            return Err(StoreError::QueueFull {
                limit: new.max_queued,
            });
        }
        let message_id = new.message_id.clone();
        tables.messages.push(new);
        Ok(QueuedMessage {
            message_id,
            is_new: true,
            turn: None,
            has_others: tables.has_others,
        })
    }

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool> {
        let mut tables = self.open()?;
        let is_there = tables.shows(access, conversation_id)
            && !tables.taken.iter().any(|(id, _)| id == message_id);
        let before = tables.messages.len();
        tables
            .messages
            .retain(|row| !is_there || row.message_id != message_id);
        Ok(tables.messages.len() < before)
    }
}
