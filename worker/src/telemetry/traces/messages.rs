//! Wraps the port to waiting messages. A stored message keeps the span of its request for the later turn.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_store::{
    Access, MessageCancel, MessageQueue, NewMessage, QueuedMessage, RetryTurn, StoreError, TraceKey,
};
use opentelemetry::{Context, KeyValue, trace::TraceContextExt};

use super::known::KnownTraces;

/// A port to waiting messages that stores traces.
pub(super) struct TracedMessages {
    port: Arc<dyn MessageQueue>,
    known: Arc<KnownTraces>,
}

impl TracedMessages {
    pub(super) fn new(port: Arc<dyn MessageQueue>, known: Arc<KnownTraces>) -> Self {
        Self { port, known }
    }

    /// Notes the message in the request's span, and keeps the span for the later turn.
    async fn note(&self, access: &Access, conversation_id: &str, queued: &QueuedMessage) {
        let message_id = &queued.message_id;
        Context::map_current(|context| {
            context.span().set_attributes([
                KeyValue::new("everturn.tenant.id", access.tenant_id.clone()),
                KeyValue::new("gen_ai.conversation.id", conversation_id.to_owned()),
                KeyValue::new("everturn.message.id", message_id.clone()),
            ]);
        });
        if queued.is_waiting() {
            let turn = TraceKey::of_turn(conversation_id, message_id);
            self.known.offer(&turn).await;
        }
    }
}

#[async_trait]
impl MessageQueue for TracedMessages {
    async fn queue_message(
        &self,
        access: &Access,
        new: NewMessage,
    ) -> Result<QueuedMessage, StoreError> {
        let conversation_id = new.conversation_id.clone();
        let queued = self.port.queue_message(access, new).await?;
        self.note(access, &conversation_id, &queued).await;
        Ok(queued)
    }

    async fn retry_turn(
        &self,
        access: &Access,
        retry: RetryTurn,
    ) -> Result<QueuedMessage, StoreError> {
        let conversation_id = retry.message.conversation_id.clone();
        let queued = self.port.retry_turn(access, retry).await?;
        self.note(access, &conversation_id, &queued).await;
        Ok(queued)
    }

    async fn cancel_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<MessageCancel, StoreError> {
        let port = &self.port;
        port.cancel_message(access, conversation_id, message_id, reason)
            .await
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
}
