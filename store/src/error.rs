//! What can go wrong in the store, by what the caller can do about it.

use std::fmt;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away, locked for too long or out of space: the same call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database reports an error of a kind that this version does not know. It may pass, or not.
    #[error("the database reports an error that this version does not know: {0}")]
    Unexpected(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was asked for does not exist.
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// The kind of thing.
        what: Missing,
        /// The id that was asked for.
        id: String,
    },
    /// The call contradicts what is stored; repeating it will not help.
    #[error("{0}")]
    Conflict(String),
    /// The conversation is not one of the tenant that a run was told, or has another id there. Nothing was changed, and
    /// repeating the call will not help.
    #[error("{0}")]
    ForeignConversation(String),
    /// The run that asks was replaced by a newer one of the same conversation (invariant 11, one run). Nothing was
    /// changed, and repeating the call will not help.
    #[error(
        "a newer run of conversation `{conversation_id}` has taken over; this one may end nothing and change nothing"
    )]
    RunReplaced {
        /// The conversation.
        conversation_id: String,
    },
    /// The conversation already has as many waiting messages as it may.
    #[error("the conversation already has {limit} messages waiting; wait for a turn to end")]
    QueueFull {
        /// The limit.
        limit: u32,
    },
    /// The tenant, or the conversation's owner, already has as many conversations with a turn that runs or waits as it may.
    #[error(
        "{limit} conversations of the {of} already have a turn that runs or waits; wait for one to end"
    )]
    TooManyTurns {
        /// The limit.
        limit: u32,
        /// Whose limit it is.
        of: TurnsOf,
    },
    /// The client's id of a message belongs to a message with another text or other attachments, or its key of an upload
    /// to another file.
    #[error(
        "the id `{client_message_id}` belongs to a message or an upload with another content; choose another id"
    )]
    OtherContent {
        /// The client's id.
        client_message_id: String,
    },
    /// The tenant has uploaded as many bytes as may be that no message names.
    #[error(
        "the tenant has uploaded {limit} bytes that no message names; name them in messages, or wait a day"
    )]
    TooManyBlobs {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The blobs that a message names have more bytes together than a message may have.
    #[error("the attachments of a message have at most {limit} bytes together; name fewer")]
    AttachmentsTooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The object store that holds blobs does not answer, or refuses the worker or gateway.
    #[error("the object store of blobs is not available: {0}")]
    ObjectsUnavailable(String),
    /// Stored data that this version cannot read, or a bug. Repeating the call will not help.
    #[error("the store holds something unexpected: {0}")]
    Corrupt(String),
}

/// The kind of a thing that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A conversation.
    Conversation,
    /// A message of a user.
    Message,
    /// The definition of an agent.
    Agent,
    /// A turn, or a sub-agent's part of one.
    AgentExecution,
    /// The reply of a model's call.
    Checkpoint,
    /// A tool execution.
    ToolExecution,
    /// An API key or a session.
    Key,
    /// An image or a file.
    Blob,
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Conversation => "conversation",
            Self::Message => "message",
            Self::Agent => "agent",
            Self::AgentExecution => "agent execution",
            Self::Checkpoint => "checkpoint",
            Self::ToolExecution => "tool execution",
            Self::Key => "key",
            Self::Blob => "blob",
        })
    }
}

impl StoreError {
    /// Shorthand for [`StoreError::NotFound`].
    pub fn not_found(what: Missing, id: impl Into<String>) -> Self {
        Self::NotFound {
            what,
            id: id.into(),
        }
    }

    /// True when the same call may succeed later, however long it takes.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// True when the same call may succeed soon, or never.
    pub fn is_unexpected(&self) -> bool {
        matches!(self, Self::Unexpected(_))
    }
}

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Whose turns are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsOf {
    /// All of the tenant.
    Tenant,
    /// The turns in conversations of one owner.
    Owner,
}

impl std::fmt::Display for TurnsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Owner => "owner",
        })
    }
}
