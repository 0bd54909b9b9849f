//! The removal of old conversations.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Result;

/// Removes old conversations, the rows of conversations that are gone for readers, and unused definitions of agents.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Counts the conversations and events that repeated calls of [`Retention::remove_expired`] would remove.
    async fn count_expired(&self, before: DateTime<Utc>) -> Result<Removed>;

    /// Removes conversations with their last event (or creation, if without events) before `before`, in one
    /// transaction: the next `limit` conversations by id behind `after` (`None`: from the first), fewer if they have
    /// many events. A conversation with a running turn or a waiting message stays. A conversation locked by a writer is
    /// skipped. A conversation with more than 10,000 events is gone for readers after the transaction, and
    /// [`Retention::remove_rest`] removes its rows.
    async fn remove_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RemovedBatch>;

    /// Returns the first conversation's id for the next [`Retention::remove_expired`]; `None` at the end.
    async fn next_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
    ) -> Result<Option<String>>;

    /// Removes at most `max_rows` rows of a conversation that is gone for readers, in one transaction. Callers repeat the
    /// call until the answer is false: no rows are left, or other processes remove the rest. An error may be of a late
    /// row of a worker, and a repeated call then removes the row.
    async fn remove_rest(&self, max_rows: u32) -> Result<bool>;

    /// Removes at most `limit` definitions of agents without an agent execution, in one transaction. Returns their
    /// number. A turn that begins with such a definition at the same time stores the definition again.
    async fn remove_definitions(&self, limit: u32) -> Result<u64>;
}

/// The number of removed rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Removed {
    /// Conversations, removed with every row.
    #[sqlx(try_from = "i64")]
    pub conversations: u64,
    /// Events of the removed conversations.
    #[sqlx(try_from = "i64")]
    pub events: u64,
}

/// The removal of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedBatch {
    /// The number of removed rows.
    pub removed: Removed,
    /// `after` of the next batch; `None` at the end.
    pub next: Option<String>,
}
