//! Summaries and usage of tenants.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Result, UsageBy, UsageCursor, UsageDay};

/// Reads data of tenants, for their administrators.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// Returns at most `limit` tenants by id behind `after` (`None`: from the first). The list has the tenants with a
    /// conversation, a key or sums of usage.
    async fn tenants(&self, after: Option<&str>, limit: u32) -> Result<Vec<TenantSummary>>;

    /// Returns the summary of a tenant, even of an unknown tenant.
    async fn tenant(&self, tenant_id: &str) -> Result<TenantSummary>;

    /// Returns the usage by tenant and day, and by model or agent, of one tenant or of every tenant.
    async fn usage_of_tenants(&self, query: &TenantsUsageQuery) -> Result<Vec<TenantUsageDay>>;
}

/// The summary of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TenantSummary {
    /// The id.
    pub tenant_id: String,
    /// Keys that are valid now.
    #[sqlx(try_from = "i64")]
    pub valid_keys: u64,
    /// The number of conversations; counting stops at [`TenantSummary::MAX_COUNTED`].
    #[sqlx(try_from = "i64")]
    pub conversations: u64,
    /// Turns that run now.
    #[sqlx(try_from = "i64")]
    pub running_turns: u64,
    /// The time of the last activity in a conversation.
    pub last_activity_at: Option<DateTime<Utc>>,
}

impl TenantSummary {
    /// The largest count of conversations. The limit keeps the time for reading a page bounded.
    pub const MAX_COUNTED: u32 = 10_000;
}

/// A query for sums of usage. A day is written as `2026-11-30`, in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantsUsageQuery {
    /// The kind of the sums.
    pub by: UsageBy,
    /// Only the usage of the agent; `None` for every agent.
    pub agent: Option<String>,
    /// Only the sums of the tenant.
    pub tenant_id: Option<String>,
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// The cursor: the last row of the page before; `None` for the first page.
    pub after: Option<TenantUsageCursor>,
    /// The most rows.
    pub limit: u32,
}

/// A cursor in the sums of every tenant, which are ordered by tenant and day, and by model or agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantUsageCursor {
    /// The tenant.
    pub tenant_id: String,
    /// The cursor in the tenant's sums.
    pub of_tenant: UsageCursor,
}

/// The usage of a model, or of an agent, by a tenant on a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct TenantUsageDay {
    /// The tenant.
    pub tenant_id: String,
    /// The sums.
    #[sqlx(flatten)]
    pub day: UsageDay,
}
