//! Budgets of turns, conversations and tenants, and what calls of models took.

use async_trait::async_trait;
use everturn_proto::event::Usage;
use sqlx::FromRow;

use super::Result;
use crate::columns::{MaybeSum, Sum};

/// What a tenant may take on a day (UTC). `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayBudget {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Money, in nano-USD.
    pub nano_usd: Option<u64>,
}

/// What a call of a model may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens, read and written; at least 1.
    pub tokens: u64,
    /// Money, in nano-USD; 0 when the model has no price.
    pub nano_usd: u64,
}

/// Answer to a call that asks for a part of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// The call may be made. What it may take is reserved until its answer is stored, it is called again, or its agent
    /// execution ends.
    Made,
    /// What is left is less than the call may take.
    Exhausted(Exhausted),
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// Which one.
    pub limit: BudgetLimit,
    /// How large it is: steps, tokens or nano-USD.
    pub most: u64,
    /// What was taken of it.
    pub taken: u64,
    /// What other calls that are being made now may still take of it.
    pub reserved: u64,
}

/// The limits of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetLimit {
    /// The steps of a turn.
    Steps,
    /// The tokens of a turn.
    Tokens,
    /// The money of a turn.
    Usd,
    /// The tokens of a conversation.
    ConversationTokens,
    /// The money of a conversation.
    ConversationUsd,
    /// The tokens of a tenant's day.
    DayTokens,
    /// The money of a tenant's day.
    DayUsd,
}

/// What calls of models took whose answers were stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Spent {
    /// Tokens.
    #[sqlx(flatten, try_from = "UsageColumns")]
    pub usage: Usage,
    /// What they cost, in nano-USD; `None` when no model of them has a price.
    #[sqlx(rename = "spent_nano", try_from = "MaybeSum")]
    pub nano_usd: Option<u64>,
}

impl Spent {
    /// The sums with another call.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let nano_usd = match (self.nano_usd, other.nano_usd) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            usage: self.usage.with(&other.usage),
            nano_usd,
        }
    }
}

#[derive(FromRow)]
struct UsageColumns {
    #[sqlx(rename = "spent_input")]
    input: Sum,
    #[sqlx(rename = "spent_output")]
    output: Sum,
    #[sqlx(rename = "spent_cached")]
    cached: Sum,
    #[sqlx(rename = "spent_cache_write")]
    cache_write: Sum,
    #[sqlx(rename = "spent_reasoning")]
    reasoning: Sum,
}

impl From<UsageColumns> for Usage {
    fn from(columns: UsageColumns) -> Self {
        Self {
            input_tokens: columns.input.into(),
            output_tokens: columns.output.into(),
            cached_tokens: columns.cached.into(),
            cache_write_tokens: columns.cache_write.into(),
            reasoning_tokens: columns.reasoning.into(),
        }
    }
}

/// Reads what tenants took. For gateways.
#[async_trait]
pub trait TenantUsage: Send + Sync {
    /// Returns what the tenant took, by day and model, at most `limit` of the rows behind `after`.
    async fn usage_days(&self, tenant_id: &str, query: &UsageQuery) -> Result<Vec<UsageDay>>;

    /// Removes the sums of the days before this one, of all tenants. Returns how many rows it removed.
    async fn forget_usage(&self, before_day: &str) -> Result<u64>;
}

/// Which sums of a tenant are asked for. A day is written as `2026-11-30`, in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// The last row of the page before; none for the first page.
    pub after: Option<UsagePlace>,
    /// The most rows.
    pub limit: u32,
}

/// The place of a row among the sums of a tenant, which are ordered by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsagePlace {
    /// The day, in UTC: `2026-11-30`.
    pub day: String,
    /// `provider/model`.
    pub model: String,
}

/// What a tenant took of one model on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct UsageDay {
    /// The day, in UTC: `2026-11-30`.
    pub day: String,
    /// `provider/model`.
    pub model: String,
    /// Calls whose answers were stored.
    #[sqlx(try_from = "i64")]
    pub calls: u64,
    /// Tokens that these have read.
    #[sqlx(try_from = "i64")]
    pub input_tokens: u64,
    /// Tokens that these have written.
    #[sqlx(try_from = "i64")]
    pub output_tokens: u64,
    /// Tokens that the provider had in its cache. They are part of `input_tokens`.
    #[sqlx(try_from = "i64")]
    pub cached_tokens: u64,
    /// Tokens that the provider wrote to its cache. They are part of `input_tokens`.
    #[sqlx(try_from = "i64")]
    pub cache_write_tokens: u64,
    /// Tokens of the reasoning. They are part of `output_tokens`.
    #[sqlx(try_from = "i64")]
    pub reasoning_tokens: u64,
    /// What these calls cost, in nano-USD. Calls of models without a price count as 0.
    #[sqlx(rename = "cost_nano", try_from = "i64")]
    pub nano_usd: u64,
    /// Calls of turns with a budget that were cut before their answers were stored.
    #[sqlx(try_from = "i64")]
    pub cut_calls: u64,
    /// The most tokens that these may have taken.
    #[sqlx(try_from = "i64")]
    pub cut_tokens: u64,
    /// The most that they may have cost, in nano-USD.
    #[sqlx(rename = "cut_nano", try_from = "i64")]
    pub cut_nano_usd: u64,
}
