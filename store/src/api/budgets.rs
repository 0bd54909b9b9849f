//! Budgets of turns, conversations and tenants, and the usage of model calls.

use async_trait::async_trait;
use everturn_proto::{event::Usage, turn::AgentDefinition};
use sqlx::FromRow;

use super::{Result, ToolUsageDay, ToolUsageQuery};
use crate::columns::{MaybeSum, Sum};

/// A tenant's budget for a day (UTC). `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayBudget {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Money, in nano-USD.
    pub nano_usd: Option<u64>,
}

/// The largest possible usage of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens, read and written; at least 1.
    pub tokens: u64,
    /// Money, in nano-USD; 0 for a model without a price.
    pub nano_usd: u64,
}

impl Estimate {
    /// Returns the possible usage of a call of the agent's model: `input_tokens`, and the longest answer.
    pub fn of(agent: &AgentDefinition, input_tokens: u64) -> Self {
        let usage = Usage {
            input_tokens: u32::try_from(input_tokens).unwrap_or(u32::MAX),
            output_tokens: agent.longest_answer(),
            ..Usage::default()
        };
        Self {
            tokens: usage.tokens().max(1),
            nano_usd: agent.prices.map_or(0, |prices| prices.nano_usd(&usage)),
        }
    }
}

/// A call without a reply that the provider probably bills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutCall {
    /// The possible usage of the call.
    pub most: Estimate,
    /// The called model (`<provider>/<model>`), if the model is not the agent's own.
    pub other_model: Option<String>,
}

/// The result of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// The worker may make the call. The call's estimate is reserved until its reply is stored, the step is claimed
    /// again, or the agent execution ends.
    Made,
    /// The budget's rest is smaller than the call's estimate.
    Exhausted(Exhausted),
}

/// An exhausted budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// The exhausted limit.
    pub limit: BudgetLimit,
    /// The limit's size: steps, tokens or nano-USD.
    pub most: u64,
    /// The used part.
    pub taken: u64,
    /// The part reserved for calls in progress.
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

/// The usage of model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Spent {
    /// Tokens of the calls with stored replies.
    #[sqlx(flatten, try_from = "UsageColumns")]
    pub usage: Usage,
    /// The cost of the calls with stored replies in nano-USD; `None` if no model of the calls has a price.
    #[sqlx(rename = "spent_nano", try_from = "MaybeSum")]
    pub nano_usd: Option<u64>,
    /// The number of calls with stored replies whose tokens are estimated.
    #[sqlx(rename = "spent_estimated", try_from = "Sum")]
    pub estimated_calls: u32,
    /// The calls without stored replies.
    #[sqlx(flatten)]
    pub cut: CutCalls,
}

/// Calls without stored replies that the provider probably bills, and the largest possible usage of the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct CutCalls {
    /// The number of calls.
    #[sqlx(rename = "spent_cut_calls", try_from = "Sum")]
    pub calls: u32,
    /// Tokens, read and written.
    #[sqlx(rename = "spent_cut_tokens", try_from = "Sum")]
    pub tokens: u32,
    /// Money, in nano-USD. Calls of models without a price count as 0.
    #[sqlx(rename = "spent_cut_nano", try_from = "i64")]
    pub nano_usd: u64,
}

impl CutCalls {
    /// Returns the sums with other calls.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            nano_usd: self.nano_usd.saturating_add(other.nano_usd),
        }
    }
}

impl Spent {
    /// Adds the usage of another call.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let nano_usd = match (self.nano_usd, other.nano_usd) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            usage: self.usage.with(&other.usage),
            nano_usd,
            estimated_calls: self.estimated_calls.saturating_add(other.estimated_calls),
            cut: self.cut.with(&other.cut),
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
    #[sqlx(rename = "spent_estimated")]
    estimated: i64,
}

impl From<UsageColumns> for Usage {
    fn from(columns: UsageColumns) -> Self {
        Self {
            input_tokens: columns.input.into(),
            output_tokens: columns.output.into(),
            cached_tokens: columns.cached.into(),
            cache_write_tokens: columns.cache_write.into(),
            reasoning_tokens: columns.reasoning.into(),
            estimated: columns.estimated > 0,
        }
    }
}

/// Reads the usage of tenants. For gateways.
#[async_trait]
pub trait TenantUsage: Send + Sync {
    /// Returns the tenant's usage by day, and by model or agent, at most `limit` rows behind `after`.
    async fn usage_days(&self, tenant_id: &str, query: &UsageQuery) -> Result<Vec<UsageDay>>;

    /// Returns the sums of tool calls by tenant, day and tool, at most `limit` rows behind `after`.
    async fn tool_usage(&self, query: &ToolUsageQuery) -> Result<Vec<ToolUsageDay>>;

    /// Removes the sums of every tenant before the day. Returns the number of removed rows.
    async fn forget_usage(&self, before_day: &str) -> Result<u64>;
}

/// The kind of sums of usage: beside the day, a sum has a model or an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageBy {
    /// A sum for each model.
    #[default]
    Model,
    /// A sum for each agent.
    Agent,
}

/// A query for a tenant's sums. A day is written as `2026-11-30`, in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// The kind of the sums.
    pub by: UsageBy,
    /// Only the usage of the agent; `None` for every agent.
    pub agent: Option<String>,
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// The cursor: the last row of the page before; `None` for the first page.
    pub after: Option<UsageCursor>,
    /// The most rows.
    pub limit: u32,
}

/// A cursor in the sums of a tenant, which are ordered by day, and by model or agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCursor {
    /// The day, in UTC: `2026-11-30`.
    pub day: String,
    /// `provider/model`, or the agent.
    pub name: String,
}

/// The usage of a model, or of an agent, by a tenant on a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct UsageDay {
    /// The day, in UTC: `2026-11-30`.
    pub day: String,
    /// `provider/model`; `None` in sums by agent.
    pub model: Option<String>,
    /// The agent; `None` in sums by model.
    pub agent: Option<String>,
    /// Calls with stored replies.
    #[sqlx(try_from = "i64")]
    pub calls: u64,
    /// Input tokens of the calls.
    #[sqlx(try_from = "i64")]
    pub input_tokens: u64,
    /// Output tokens of the calls.
    #[sqlx(try_from = "i64")]
    pub output_tokens: u64,
    /// Tokens from the provider's cache, a part of `input_tokens`.
    #[sqlx(try_from = "i64")]
    pub cached_tokens: u64,
    /// Tokens written to the provider's cache, a part of `input_tokens`.
    #[sqlx(try_from = "i64")]
    pub cache_write_tokens: u64,
    /// Tokens of the reasoning, a part of `output_tokens`.
    #[sqlx(try_from = "i64")]
    pub reasoning_tokens: u64,
    /// The calls' cost in nano-USD. Calls of models without a price count as 0.
    #[sqlx(rename = "cost_nano", try_from = "i64")]
    pub nano_usd: u64,
    /// Calls that were cut before their replies were stored.
    #[sqlx(try_from = "i64")]
    pub cut_calls: u64,
    /// The largest possible number of tokens of the cut calls.
    #[sqlx(try_from = "i64")]
    pub cut_tokens: u64,
    /// The largest possible cost of the cut calls, in nano-USD.
    #[sqlx(rename = "cut_nano", try_from = "i64")]
    pub cut_nano_usd: u64,
    /// Calls with stored replies whose tokens are estimated, because the provider counted none.
    #[sqlx(try_from = "i64")]
    pub estimated_calls: u64,
}

impl UsageDay {
    /// Returns the model or the agent of the sum.
    pub fn name(&self) -> &str {
        let name = self.model.as_ref().or(self.agent.as_ref());
        name.map_or("", String::as_str)
    }
}
