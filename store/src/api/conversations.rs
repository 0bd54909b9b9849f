//! Conversations and their accepted messages.

use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::OnBusy;

use super::{
    Access, NewAuditEntry, Result,
    lists::{Conversation, ListPage, ListQuery},
};

/// Conversations and their accepted messages. The gateway writes both.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Creates the conversation, or returns the tenant's existing conversation with the name. Returns `None` if the new
    /// conversation's owner may not see the existing conversation.
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>>;

    /// Returns the caller's conversation with the name. Every other call takes the conversation's id.
    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>>;

    /// Returns a page of conversations, the most recently updated first.
    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage>;

    /// Returns for every caller the latest update time of the visible conversations; `None` without conversations. The
    /// times are in the order of the callers, at most some thousand. A gateway finds changed lists with these times.
    async fn last_updates(&self, callers: &[Access]) -> Result<Vec<Option<DateTime<Utc>>>>;

    /// Changes or removes the conversation's title, and keeps the conversation's rank in lists. Returns `None` for a
    /// missing conversation.
    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>>;

    /// Removes the conversation with every row in one transaction, even with a running turn. Returns false for a
    /// missing conversation. A worker in the middle of the conversation's turn gets [`StoreError::NotFound`]. For a
    /// day, no turn creates the conversation again ([`TurnStore::begin_turn`]); [`Conversations::create_conversation`]
    /// may at once.
    ///
    /// The removal is a single transaction for any size, because no reader must see half a conversation. 100,000 events
    /// take about a second, in which SQLite's other writers wait. A million events take some ten seconds. PostgreSQL
    /// allows the transaction ten minutes. The audit entry is part of the transaction.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`TurnStore::begin_turn`]: super::TurnStore::begin_turn
    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        audit: Option<&NewAuditEntry>,
    ) -> Result<bool>;

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

    /// Removes a waiting message without a trace. Returns false for a missing message, or if a turn has taken the
    /// message.
    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool>;

    /// Returns the point at which a conversation without a workflow continues, with at most `max_waiting` messages;
    /// `None` for a missing conversation.
    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>>;
}

/// A conversation to create.
#[derive(Debug, Clone)]
pub struct NewConversation {
    /// The name, unique in the tenant; see `ids::is_valid`. Name and tenant determine the conversation's id
    /// ([`ConversationName`](everturn_proto::ConversationName)).
    pub name: String,
    /// The creator, who becomes the owner. A conversation without an owner belongs to the tenant alone.
    pub access: Access,
    /// The agent of the conversation.
    pub agent: String,
    /// The title in lists; `None`: the beginning of the first message becomes the title.
    pub title: Option<String>,
}

impl NewConversation {
    /// Returns the conversation's id.
    pub(crate) fn id(&self) -> String {
        self.access.id_of(&self.name)
    }
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

/// The point at which a conversation without a workflow continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// The unfinished turn.
    pub turn: Option<UnfinishedTurn>,
    /// Waiting messages in order, without messages due for rejection.
    pub waiting: Vec<String>,
    /// True if the conversation has ever begun a turn.
    pub has_begun: bool,
}

/// An unfinished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// The turn's first message.
    pub message_id: String,
    /// The step of the turn's last `llm_complete`; `None` before the first.
    pub checkpoint_step: Option<u32>,
}
