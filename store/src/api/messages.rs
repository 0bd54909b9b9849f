//! Messages that wait for a turn.

use std::num::NonZeroU32;

use async_trait::async_trait;
use everturn_proto::words::OnBusy;

use super::{Access, Result};

/// Accepts messages, which wait until a turn takes them. For gateways.
#[async_trait]
pub trait MessageQueue: Send + Sync {
    /// Stores a message as `queued` (invariant 9, accepted means durable). If the conversation has a message with the
    /// `client_message_id` already, the call returns the stored message and writes no row. Errors:
    /// [`StoreError::OtherContent`] if the stored message has different content, [`StoreError::QueueFull`] if
    /// `max_queued` messages wait, [`StoreError::TooManyTurns`] if the tenant has `max_turns` or the owner
    /// `max_turns_of_owner`, and [`StoreError::NotFound`] for a missing conversation.
    ///
    /// [`StoreError::OtherContent`]: crate::StoreError::OtherContent
    /// [`StoreError::QueueFull`]: crate::StoreError::QueueFull
    /// [`StoreError::TooManyTurns`]: crate::StoreError::TooManyTurns
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage>;

    /// Stores the retry of the conversation's newest turn, which has failed, as a waiting message. The turn of the retry
    /// goes on from the context of the failed turn. A failed turn has one retry: a repeated call returns the stored
    /// retry. Errors: [`StoreError::NotRetryable`] for a turn in another state, and those of
    /// [`queue_message`](Self::queue_message).
    ///
    /// [`StoreError::NotRetryable`]: crate::StoreError::NotRetryable
    async fn retry_turn(&self, access: &Access, retry: RetryTurn) -> Result<QueuedMessage>;

    /// Notes that a message's turn must end: the running turn of the message, or the turn of a waiting message at its
    /// start. The first reason stays, so a caller may repeat the call. The note is durable: a run that takes or resumes
    /// the message finds the note.
    async fn cancel_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<MessageCancel>;

    /// Removes a waiting message without a trace. Returns false for a missing message, or if a turn has taken the
    /// message.
    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool>;
}

/// A message to accept.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The conversation.
    pub conversation_id: String,
    /// The id of a new message.
    pub message_id: String,
    /// The client's own id (an idempotency key), unique in the conversation.
    pub client_message_id: Option<String>,
    /// The text.
    pub content: String,
    /// The sender, authenticated by the gateway; `None` for an unknown sender. Approval policies compare the sender
    /// with the approver.
    pub sent_by: Option<String>,
    /// The chosen model of the message's turn, `provider/model`; `None`: the agent's own model.
    pub model: Option<String>,
    /// True if the message itself names the model. A repeated message must then have an equal model. Otherwise the model
    /// comes from the conversation, and may have changed since the first message.
    pub names_model: bool,
    /// The ids of the message's blobs, without duplicates. Accepting the message gives the blobs to the conversation.
    /// The store refuses a message with an invisible blob, or with a blob of another conversation.
    pub attachments: Vec<String>,
    /// The limit of the blobs' bytes together.
    pub max_attached_bytes: u64,
    /// The message's effect on a running turn, stored for [`Reconciliation`](super::Reconciliation).
    pub on_busy: OnBusy,
    /// The limit of waiting messages in the conversation.
    pub max_queued: u32,
    /// The limit of the tenant's other conversations with a running turn or a waiting message; `None`: no limit.
    /// Parallel messages in several conversations may exceed the limit together, because a lock would cost too much.
    pub max_turns: Option<NonZeroU32>,
    /// The limit for the other conversations of the conversation's owner. A conversation without an owner has no such
    /// limit.
    pub max_turns_of_owner: Option<NonZeroU32>,
}

/// The state of a message whose cancel was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCancel {
    /// The message waits. Its turn ends at the start.
    Waiting,
    /// The message began the running turn, which ends.
    Running,
    /// The message has no unfinished turn, or is unknown or invisible. Nothing was noted.
    Ended,
}

/// A failed turn to retry.
#[derive(Debug, Clone)]
pub struct RetryTurn {
    /// The first message of the failed turn; `None` for the conversation's newest turn.
    pub failed_message_id: Option<String>,
    /// The sender, the client's id and the limits of the retry. The store chooses the id, and a retry has no text and no
    /// blobs.
    pub message: NewMessage,
}

/// The result of storing a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// The message's id. A repeated message has the stored message's id.
    pub message_id: String,
    /// False for a repeated message.
    pub is_new: bool,
    /// The turn of the message; `None` for a waiting message.
    pub turn: Option<TakenBy>,
    /// True if the conversation has another waiting message or an unfinished turn.
    pub has_others: bool,
}

impl QueuedMessage {
    /// Makes the result for a new message.
    pub(crate) fn new(message_id: &str, has_others: bool) -> Self {
        Self {
            message_id: message_id.to_owned(),
            is_new: true,
            turn: None,
            has_others,
        }
    }

    /// Returns false after a turn has taken the message.
    pub fn is_waiting(&self) -> bool {
        self.turn.is_none()
    }
}

/// The turn of a taken message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBy {
    /// The turn's first message. The id differs from the taken message's id after steering.
    pub message_id: String,
    /// False after the turn's end.
    pub is_running: bool,
}
