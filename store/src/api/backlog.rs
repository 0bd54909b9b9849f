//! The work that waits across conversations, for metrics of gateways.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::FromRow;

use super::Result;

/// Reads the waiting work of every tenant.
#[async_trait]
pub trait Backlogs: Send + Sync {
    /// Returns the work that waits at the time `now`.
    async fn backlog(&self, now: DateTime<Utc>) -> Result<Backlog>;
}

/// The waiting work of every tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Tool calls that wait for approvals, by agent.
    pub approvals: Vec<WaitingApprovals>,
    /// The due checks of the reconciler.
    pub checks: DueChecks,
}

impl Backlog {
    /// The largest count of calls and of checks, the oldest first. The limit keeps the time for reading bounded.
    pub const MAX_COUNTED: u32 = 10_000;
}

/// The tool calls of an agent that wait for approvals.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct WaitingApprovals {
    /// The agent.
    pub agent: String,
    /// Number of calls.
    #[sqlx(try_from = "i64")]
    pub calls: u32,
    /// The time of the oldest call.
    pub oldest: DateTime<Utc>,
}

/// The checks of the reconciler that are due.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct DueChecks {
    /// Number of conversations.
    #[sqlx(try_from = "i64")]
    pub count: u32,
    /// The time since which the oldest check is due; `None` without a due check.
    pub oldest: Option<DateTime<Utc>>,
}
