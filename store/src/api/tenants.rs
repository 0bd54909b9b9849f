//! What the store knows of tenants.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Result, UsageDay, UsagePlace};

/// Reads about tenants, for those who look after them.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// Returns the tenants that have a conversation, a key or sums of usage, by id behind `after` (`None`: from the
    /// first), at most `limit` of them.
    async fn tenants(&self, after: Option<&str>, limit: u32) -> Result<Vec<TenantSummary>>;

    /// Returns one tenant, whether the store knows it or not.
    async fn tenant(&self, tenant_id: &str) -> Result<TenantSummary>;

    /// Returns what tenants took, by tenant, day and model, of one tenant or of all.
    async fn usage_of_tenants(&self, query: &TenantsUsageQuery) -> Result<Vec<TenantUsageDay>>;
}

/// What the store knows of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TenantSummary {
    /// Its id.
    pub tenant_id: String,
    /// Keys that are valid now.
    #[sqlx(try_from = "i64")]
    pub valid_keys: u64,
    /// Conversations; no more than [`TenantSummary::MAX_COUNTED`] are counted.
    #[sqlx(try_from = "i64")]
    pub conversations: u64,
    /// Turns that run now.
    #[sqlx(try_from = "i64")]
    pub running_turns: u64,
    /// When something last happened in a conversation.
    pub last_activity_at: Option<DateTime<Utc>>,
}

impl TenantSummary {
    /// The most conversations that are counted, so that a page is read in a bounded time.
    pub const MAX_COUNTED: u32 = 10_000;
}

/// Which sums are asked for. A day is written as `2026-11-30`, in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantsUsageQuery {
    /// Only those of this tenant.
    pub tenant_id: Option<String>,
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// The last row of the page before; none for the first page.
    pub after: Option<TenantUsagePlace>,
    /// The most rows.
    pub limit: u32,
}

/// The place of a row among the sums of all tenants, which are ordered by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantUsagePlace {
    /// The tenant.
    pub tenant_id: String,
    /// The place among the tenant's sums.
    pub of_tenant: UsagePlace,
}

/// What a tenant took of one model on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct TenantUsageDay {
    /// The tenant.
    pub tenant_id: String,
    /// The sums.
    #[sqlx(flatten)]
    pub day: UsageDay,
}
