//! Removing what is old.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Result;

/// Removes what is old, whole conversations at a time. Definitions of agents stay: they are few, and shared.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Counts what [`Retention::remove_expired`], called to the end, would remove.
    async fn count_expired(&self, before: DateTime<Utc>) -> Result<Removed>;

    /// Removes conversations whose last event (or creation, when they have none) is older than `before`, in one
    /// transaction: the next `limit` of them by id behind `after` (`None`: from the first), fewer when they have
    /// many events. Never one with a running turn or a waiting message; one that is being written to is passed over.
    async fn remove_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RemovedBatch>;

    /// Returns the id of the conversation with which [`Retention::remove_expired`] begins; `None` when nothing is left.
    async fn next_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
    ) -> Result<Option<String>>;
}

/// How much was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Removed {
    /// Conversations, each with all its rows.
    #[sqlx(try_from = "i64")]
    pub conversations: u64,
    /// Their events.
    #[sqlx(try_from = "i64")]
    pub events: u64,
}

/// What one transaction removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedBatch {
    /// How much.
    pub removed: Removed,
    /// `after` of the next batch; `None` when nothing is left.
    pub next: Option<String>,
}
