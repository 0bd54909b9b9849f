//! Wraps the port to conversations. A stored message keeps the span of its request for the later turn.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_store::{
    Access, Conversation, Conversations, ListPage, ListQuery, NewAuditEntry, NewConversation,
    NewMessage, QueuedMessage, ResumePoint, StoreError, TraceKey,
};
use opentelemetry::{Context, KeyValue, trace::TraceContextExt};

use super::known::KnownTraces;

/// A port to conversations that stores traces.
pub(super) struct TracedConversations {
    port: Arc<dyn Conversations>,
    known: Arc<KnownTraces>,
}

impl TracedConversations {
    pub(super) fn new(port: Arc<dyn Conversations>, known: Arc<KnownTraces>) -> Self {
        Self { port, known }
    }
}

#[async_trait]
impl Conversations for TracedConversations {
    async fn create_conversation(
        &self,
        new: NewConversation,
    ) -> Result<Option<Conversation>, StoreError> {
        self.port.create_conversation(new).await
    }

    async fn conversation(
        &self,
        access: &Access,
        id: &str,
    ) -> Result<Option<Conversation>, StoreError> {
        self.port.conversation(access, id).await
    }

    async fn list_conversations(
        &self,
        access: &Access,
        query: &ListQuery,
    ) -> Result<ListPage, StoreError> {
        self.port.list_conversations(access, query).await
    }

    async fn last_updates(
        &self,
        callers: &[Access],
    ) -> Result<Vec<Option<DateTime<Utc>>>, StoreError> {
        self.port.last_updates(callers).await
    }

    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>, StoreError> {
        self.port.rename_conversation(access, id, title).await
    }

    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        audit: Option<&NewAuditEntry>,
    ) -> Result<bool, StoreError> {
        self.port.delete_conversation(access, id, audit).await
    }

    async fn queue_message(
        &self,
        access: &Access,
        new: NewMessage,
    ) -> Result<QueuedMessage, StoreError> {
        let conversation_id = new.conversation_id.clone();
        let queued = self.port.queue_message(access, new).await?;
        let message_id = &queued.message_id;
        Context::map_current(|context| {
            context.span().set_attributes([
                KeyValue::new("everturn.tenant.id", access.tenant_id.clone()),
                KeyValue::new("gen_ai.conversation.id", conversation_id.clone()),
                KeyValue::new("everturn.message.id", message_id.clone()),
            ]);
        });
        if queued.is_waiting() {
            let turn = TraceKey::of_turn(&conversation_id, message_id);
            self.known.offer(&turn).await;
        }
        Ok(queued)
    }

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool, StoreError> {
        let port = &self.port;
        port.withdraw_message(access, conversation_id, message_id)
            .await
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>, StoreError> {
        let port = &self.port;
        port.resume_point(access, conversation_id, max_waiting)
            .await
    }
}
