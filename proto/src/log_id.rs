//! The id of an event log.

use std::fmt;

/// Names the event log of one conversation, from its creation to its removal. A conversation that gets the same id
/// later has another log: what a reader or a worker of the old one holds does not fit it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(String);

impl LogId {
    /// The id as it is stored.
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
