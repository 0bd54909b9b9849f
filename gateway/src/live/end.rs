//! The reasons for the end of a reader's frames.

use everturn_store::StoreError;

/// The reason for the end of a reader's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderEnd {
    /// The conversation is gone, so the reader need not come back.
    Deleted,
    /// The reader took too few frames for too long. The reader comes back with its cursor.
    TooSlow,
    /// The gateway cannot read the store. The reader comes back with its cursor.
    Unreadable,
}

impl ReaderEnd {
    /// Returns the reason's word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::TooSlow => "too_slow",
            Self::Unreadable => "unreadable",
        }
    }
}

impl From<&StoreError> for ReaderEnd {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::Deleted,
            StoreError::Unavailable(_)
            | StoreError::DiskFull(_)
            | StoreError::Unexpected(_)
            | StoreError::QueueFull { .. }
            | StoreError::TooManyTurns { .. }
            | StoreError::OtherContent { .. }
            | StoreError::NotRetryable(_)
            | StoreError::TooManyBlobs { .. }
            | StoreError::AttachmentsTooLarge { .. }
            | StoreError::ObjectsUnavailable(_)
            | StoreError::RunReplaced { .. }
            | StoreError::Superseded { .. }
            | StoreError::Conflict(_)
            | StoreError::ForeignConversation(_)
            | StoreError::Corrupt(_) => Self::Unreadable,
        }
    }
}
