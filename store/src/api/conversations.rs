//! Conversations. Their accepted messages are in `messages`.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{
    Access, NewAuditEntry, Result,
    lists::{Conversation, ListPage, ListQuery, ListVersion, ShownConversation},
};

/// Creates, reads, changes and deletes conversations. For gateways.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Creates the conversation, or returns the tenant's existing conversation with the name. Returns `None` if the new
    /// conversation's owner may not see the existing conversation.
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>>;

    /// Returns the caller's conversation with the name. Every other call takes the conversation's id.
    async fn conversation(&self, access: &Access, name: &str) -> Result<Option<Conversation>>;

    /// Returns the caller's conversation with the name, its activity and its sums. The cost of the call does not depend
    /// on the number of ended turns.
    async fn shown_conversation(
        &self,
        access: &Access,
        name: &str,
    ) -> Result<Option<ShownConversation>>;

    /// Returns a page of conversations, the most recently active first.
    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage>;

    /// Returns the versions of the callers' lists in the order of the callers, at most some thousand. A change that a list
    /// shows gives the list another version, in the transaction of the change. A gateway that reads the version before
    /// the list therefore misses no change. The saves in the middle of a turn change no version, although they change the
    /// last sequence number.
    async fn list_versions(&self, callers: &[Access]) -> Result<Vec<ListVersion>>;

    /// Changes the conversation, and keeps the conversation's rank in lists. Returns `None` for a missing conversation.
    async fn change_conversation(
        &self,
        access: &Access,
        id: &str,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>>;

    /// Removes the conversation in one transaction, even with a running turn. Returns false for a missing conversation.
    /// For a day, no turn creates the conversation again ([`Turns::begin_turn`]). The audit entry is part of the
    /// transaction.
    ///
    /// A conversation of up to 10,000 events is removed with every row. A worker in the middle of the conversation's
    /// turn gets [`StoreError::NotFound`]. [`Conversations::create_conversation`] may create the conversation again at
    /// once.
    ///
    /// A larger conversation is gone for every reader after the transaction, and every claim and save of a worker is
    /// refused. [`Retention::remove_rest`] removes the rows. Until then,
    /// [`Conversations::create_conversation`] returns [`StoreError::Unavailable`] for the name.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`StoreError::Unavailable`]: crate::StoreError::Unavailable
    /// [`Turns::begin_turn`]: super::Turns::begin_turn
    /// [`Retention::remove_rest`]: super::Retention::remove_rest
    async fn delete_conversation(
        &self,
        access: &Access,
        id: &str,
        audit: Option<&NewAuditEntry>,
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
    /// The model of new messages, `provider/model`; `None`: the agent's own model.
    pub model: Option<String>,
    /// The metadata, which providers may get.
    pub metadata: BTreeMap<String, String>,
}

/// The changes of a conversation. A field with `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// The title; empty: the beginning of the next message becomes the title.
    pub title: Option<String>,
    /// The model of new messages, `provider/model`; empty: the agent's own model.
    pub model: Option<String>,
    /// The whole metadata.
    pub metadata: Option<BTreeMap<String, String>>,
}

impl ConversationChange {
    /// Makes the change of a title.
    pub fn of_title(title: &str) -> Self {
        Self {
            title: Some(title.to_owned()),
            ..Self::default()
        }
    }
}

impl NewConversation {
    /// Makes a conversation without a title, a chosen model and metadata.
    pub fn new(name: &str, access: Access, agent: &str) -> Self {
        Self {
            name: name.to_owned(),
            access,
            agent: agent.to_owned(),
            title: None,
            model: None,
            metadata: BTreeMap::new(),
        }
    }

    /// Returns the conversation's id.
    pub(crate) fn id(&self) -> String {
        self.access.id_of(&self.name)
    }
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
