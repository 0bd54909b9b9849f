//! The removal of old conversations.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Result;

/// Removes old conversations, always as a whole. Definitions of agents stay, because definitions are few and shared.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Counts the conversations and events that repeated calls of [`Retention::remove_expired`] would remove.
    async fn count_expired(&self, before: DateTime<Utc>) -> Result<Removed>;

    /// Removes conversations with their last event (or creation, if without events) before `before`, in one
    /// transaction: the next `limit` conversations by id behind `after` (`None`: from the first), fewer if they have
    /// many events. A conversation with a running turn or a waiting message stays. A conversation locked by a writer is
    /// skipped.
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
