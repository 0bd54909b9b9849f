//! The store's errors, ordered by the caller's remedy.

use std::fmt;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away or locked for too long. The call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk of the database is full. The call may succeed when somebody has made room.
    #[error("the disk of the store is full; free some space, and Everturn goes on by itself: {0}")]
    DiskFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database reports an error unknown to this version. The error may be temporary or permanent.
    #[error("the database reports an error that this version does not know: {0}")]
    Unexpected(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The requested thing does not exist.
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// The kind of thing.
        what: Missing,
        /// The requested id.
        id: String,
    },
    /// The call contradicts the stored data. Repeating the call does not help.
    #[error("{0}")]
    Conflict(String),
    /// The conversation does not belong to the run's tenant, or has another id in the tenant. The call has changed no
    /// row, and repeating the call does not help.
    #[error("{0}")]
    ForeignConversation(String),
    /// A newer run of the conversation has replaced the run of this call (invariant 11, one run). The call has changed
    /// no row, and repeating the call does not help.
    #[error(
        "a newer run of conversation `{conversation_id}` has taken over; the old run can no longer change the conversation"
    )]
    RunReplaced {
        /// The conversation.
        conversation_id: String,
    },
    /// A newer call of the step was claimed, so the call's reply or reservation comes too late. The agent execution still
    /// runs. The call has changed no row. Another claim of the step may succeed.
    #[error(
        "call {generation} of agent execution `{agent_execution_id}` is obsolete: a newer call was claimed"
    )]
    Superseded {
        /// The agent execution.
        agent_execution_id: String,
        /// The generation of the older call.
        generation: u32,
    },
    /// The conversation has reached its limit of waiting messages.
    #[error("the conversation already has {limit} messages waiting; wait for a turn to end")]
    QueueFull {
        /// The limit.
        limit: u32,
    },
    /// The tenant or the conversation's owner has reached the limit of conversations with a running or waiting turn.
    #[error(
        "{limit} conversations of the {of} already have a running or waiting turn; wait until a turn ends"
    )]
    TooManyTurns {
        /// The limit.
        limit: u32,
        /// The subject of the limit: the tenant or the owner.
        of: TurnsOf,
    },
    /// The client's id of a message belongs to a message with other text or other attachments, or the client's key of
    /// an upload belongs to a different file.
    #[error(
        "the id `{client_message_id}` belongs to a message or an upload with another content; choose another id"
    )]
    OtherContent {
        /// The client's id.
        client_message_id: String,
    },
    /// The turn cannot be retried. The call has changed no row.
    #[error("{0}")]
    NotRetryable(NotRetryable),
    /// The tenant has reached the limit of uploaded bytes without a message.
    #[error(
        "the tenant has uploaded {limit} bytes in files without a message; name the files in messages, or wait a day"
    )]
    TooManyBlobs {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The attachments of a message exceed the limit of bytes per message.
    #[error("the attachments of a message have at most {limit} bytes together; name fewer")]
    AttachmentsTooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The object store for blobs does not answer, or refuses the worker or gateway.
    #[error("the object store of blobs is not available: {0}")]
    ObjectsUnavailable(String),
    /// Stored data unreadable for this version, or a bug. Repeating the call does not help.
    #[error("the store holds something unexpected: {0}")]
    Corrupt(String),
}

/// The reason why a turn is not retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRetryable {
    /// The conversation has had no turn yet.
    NoTurn,
    /// The turn is not the newest of the conversation.
    NotNewest,
    /// The turn has not failed: it runs, has completed or was cancelled.
    NotFailed,
    /// Messages wait for the next turn.
    MessagesWait,
}

impl fmt::Display for NotRetryable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoTurn => "The conversation has had no turn yet.",
            Self::NotNewest => "The turn is not the newest turn of the conversation.",
            Self::NotFailed => "The turn has not failed.",
            Self::MessagesWait => "Messages wait for the next turn.",
        })
    }
}

/// The kind of a missing thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A conversation.
    Conversation,
    /// A message of a user.
    Message,
    /// The definition of an agent.
    Agent,
    /// An agent execution: of a turn or of a sub-agent.
    AgentExecution,
    /// The stored reply of a model call.
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

    /// Returns true if the call may succeed later. The wait has no limit.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::DiskFull(_))
    }

    /// Returns true if the call may succeed soon, or never.
    pub fn is_unexpected(&self) -> bool {
        matches!(self, Self::Unexpected(_))
    }
}

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The subject of a limit of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsOf {
    /// The turns of the whole tenant.
    Tenant,
    /// The turns in the owner's conversations.
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
