//! Conversations and the messages they accept.

use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{ConversationName, words::OnBusy};

use super::{
    Access, NewAuditEntry, Result,
    lists::{Conversation, ListPage, ListQuery},
};

/// Conversations and the messages that they accept. The gateway writes them.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Creates the conversation, or returns the one that has its name in its tenant; `None` when the new one's owner may
    /// not see that one.
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>>;

    /// Returns the conversation that has this name in the caller's tenant. All other calls take the id of it.
    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>>;

    /// Returns a page of the conversations, the last updated first.
    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage>;

    /// Returns for each caller when the last updated one of their conversations was updated; `None` when they have none.
    /// The times are in the order of the callers, of whom there are at most some thousand. A gateway finds out with it
    /// which lists have changed.
    async fn last_updates(&self, callers: &[Access]) -> Result<Vec<Option<DateTime<Utc>>>>;

    /// Gives the conversation another title, or none, and leaves it at its place in lists; `None` when there is no
    /// such conversation.
    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>>;

    /// Removes the conversation with all its rows, in one transaction, whatever runs in it; false when there is no
    /// such conversation. A worker that still works on it gets [`StoreError::NotFound`]. For a day no turn creates it
    /// again ([`TurnStore::begin_turn`]); [`Conversations::create_conversation`] may at once.
    ///
    /// It is one transaction however much there is, so that nobody ever reads half a conversation. 100,000 events take
    /// about a second, for which SQLite's other writers wait, and a million some ten seconds. PostgreSQL gives it ten
    /// minutes. The entry of the audit trail is part of it.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`TurnStore::begin_turn`]: super::TurnStore::begin_turn
    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        audit: Option<&NewAuditEntry>,
    ) -> Result<bool>;

    /// Stores a message as `queued` (invariant 9, accepted means durable). When the conversation already has a message
    /// with this `client_message_id`, that one is returned and nothing is written. It gives
    /// [`StoreError::OtherContent`] when that one has another text, [`StoreError::QueueFull`] when `max_queued` messages
    /// wait, [`StoreError::TooManyTurns`] when the tenant has `max_turns` or the owner `max_turns_of_owner`, and
    /// [`StoreError::NotFound`] when there is no such conversation.
    ///
    /// [`StoreError::OtherContent`]: crate::StoreError::OtherContent
    /// [`StoreError::QueueFull`]: crate::StoreError::QueueFull
    /// [`StoreError::TooManyTurns`]: crate::StoreError::TooManyTurns
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage>;

    /// Removes a message that still waits, as if it had never been accepted; false when a turn has taken it, or it is
    /// not there.
    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool>;

    /// Says from where the conversation goes on when no workflow runs for it, with at most `max_waiting` messages;
    /// `None` when there is no such conversation.
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
    /// Its name, unique in its tenant; see `ids::is_valid`. Its id follows from both ([`ConversationName`]).
    pub name: String,
    /// Who creates it, and so owns it. Without an owner it belongs to the tenant alone.
    pub access: Access,
    /// Agent that answers.
    pub agent: String,
    /// Shown in lists; `None`: the beginning of the first message becomes the title.
    pub title: Option<String>,
}

impl NewConversation {
    /// The ids that it may have, the first one if it is free. The id that is a name of the default tenant may be that of
    /// another tenant's conversation, from before ids had a tenant.
    pub(crate) fn ids(&self) -> [String; 2] {
        let named = ConversationName {
            tenant_id: &self.access.tenant_id,
            name: &self.name,
        };
        [named.id(), named.qualified_id()]
    }
}

/// A message to accept.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The conversation.
    pub conversation_id: String,
    /// Id for the message when it is new.
    pub message_id: String,
    /// The client's own id (an idempotency key), unique in the conversation.
    pub client_message_id: Option<String>,
    /// The text.
    pub content: String,
    /// Who sends it, as the gateway has authenticated them; `None` when nobody is known. Policies of approvals ask for it.
    pub sent_by: Option<String>,
    /// The ids of the blobs that it names, each once. Accepting the message gives them to the conversation. The message
    /// is refused when the caller may not see one of them, or when it belongs to another conversation.
    pub attachments: Vec<String>,
    /// The most bytes that these blobs may have together.
    pub max_attached_bytes: u64,
    /// What it does when a turn runs. It is stored for [`Reconciliation`](super::Reconciliation).
    pub on_busy: OnBusy,
    /// Refuse when this many wait in the conversation already.
    pub max_queued: u32,
    /// Refuse when turns run or messages wait in this many other conversations of the tenant; `None`: never. Messages
    /// that arrive at the same instant in several conversations may pass it together: no lock is worth that.
    pub max_turns: Option<NonZeroU32>,
    /// The same limit for the other conversations of the conversation's owner. One without an owner has none.
    pub max_turns_of_owner: Option<NonZeroU32>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its id: the stored one's when the client had sent it before.
    pub message_id: String,
    /// False when it was stored before.
    pub is_new: bool,
    /// The turn that has taken it; `None` while it waits.
    pub turn: Option<TakenBy>,
    /// True when something else of the conversation has not ended: a turn, or a message that waits.
    pub has_others: bool,
}

impl QueuedMessage {
    /// What became of a message that is stored now.
    pub(crate) fn new(message_id: &str, has_others: bool) -> Self {
        Self {
            message_id: message_id.to_owned(),
            is_new: true,
            turn: None,
            has_others,
        }
    }

    /// False when a turn has already taken it.
    pub fn is_waiting(&self) -> bool {
        self.turn.is_none()
    }
}

/// The turn that took a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBy {
    /// The message it began with: another one when the message joined it by steering.
    pub message_id: String,
    /// False once it has ended.
    pub is_running: bool,
}

/// The point at which a conversation whose workflow is gone goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// The turn that has begun and not ended.
    pub turn: Option<UnfinishedTurn>,
    /// Messages that wait, in order, without those that are to be rejected.
    pub waiting: Vec<String>,
    /// True when any turn of the conversation has ever begun.
    pub has_begun: bool,
}

/// A turn that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// The message it began with.
    pub message_id: String,
    /// Step of its last `llm_complete`; `None` before the first.
    pub checkpoint_step: Option<u32>,
}
