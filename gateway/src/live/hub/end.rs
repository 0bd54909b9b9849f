//! How a reader comes to its end.

use everturn_store::StoreError;

/// Why a reader gets no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The conversation is gone: there is nothing to come back for.
    Deleted,
    /// The reader took too little for too long. It comes back with its cursor.
    TooSlow,
    /// The store could not be read. The reader comes back with its cursor.
    Unreadable,
}

impl From<&StoreError> for End {
    fn from(error: &StoreError) -> Self {
        if matches!(error, StoreError::NotFound { .. }) {
            Self::Deleted
        } else {
            Self::Unreadable
        }
    }
}
