//! The tool calls of tenants, by day and tool.

use sqlx::FromRow;

use super::TenantUsageCursor;

/// A query for sums of tool calls. A day is written as `2026-11-30`, in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUsageQuery {
    /// Only the sums of the tenant; `None` for every tenant.
    pub tenant_id: Option<String>,
    /// Only the calls of the agent; `None` for every agent.
    pub agent: Option<String>,
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// Only the sums after this cursor, whose name is a tool.
    pub after: Option<TenantUsageCursor>,
    /// The maximum number of rows.
    pub limit: u32,
}

/// A tenant's calls of one tool on one day. A call counts on the day on which its agent execution ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct ToolUsageDay {
    /// The tenant.
    pub tenant_id: String,
    /// The day, in UTC: `2026-11-30`.
    pub day: String,
    /// The tool.
    pub tool: String,
    /// The number of calls.
    #[sqlx(try_from = "i64")]
    pub calls: u64,
    /// The calls with an error as their result.
    #[sqlx(try_from = "i64")]
    pub failed_calls: u64,
    /// The time of the calls together, in milliseconds.
    #[sqlx(try_from = "i64")]
    pub duration_ms: u64,
}
