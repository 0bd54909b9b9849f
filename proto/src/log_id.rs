//! The id of an event log.

use std::fmt;

/// The id of a conversation's event log, valid from the conversation's creation to its removal. A later conversation
/// with an equal conversation id has a new log: cursors and leases of the old log do not fit the new log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(String);

impl LogId {
    /// Returns the id as the store keeps it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for LogId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&str> for LogId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
