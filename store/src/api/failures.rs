//! Failed agent executions across conversations.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::ConversationName;
use sqlx::FromRow;

use super::Result;

/// Reads the failures of agents. For gateways and operators.
#[async_trait]
pub trait Failures: Send + Sync {
    /// Returns at most `limit` failures, the newest first. `after` is the last failure of the page before; `None` for
    /// the first page. Failures of removed conversations are removed, too.
    async fn failures(
        &self,
        filter: &FailureFilter,
        after: Option<&FailureCursor>,
        limit: u32,
    ) -> Result<Vec<AgentFailure>>;

    /// Counts the failures by agent and code, and returns at most `limit` counts, the most frequent first. The counts
    /// cover the newest [`FailureCount::MAX_COUNTED`] failures.
    async fn failure_counts(&self, filter: &FailureFilter, limit: u32)
    -> Result<Vec<FailureCount>>;
}

/// The failures to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureFilter {
    /// Only failures in conversations of the tenant; `None` for every tenant.
    pub tenant_id: Option<String>,
    /// Only failures of the agent.
    pub agent: Option<String>,
    /// Only failures with the code.
    pub code: Option<String>,
    /// The begin of the period.
    pub since: DateTime<Utc>,
    /// The end of the period, which does not belong to the period.
    pub until: DateTime<Utc>,
}

/// A cursor in the failures, which are ordered by their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCursor {
    /// `finished_at` of the row.
    pub finished_at: DateTime<Utc>,
    /// The agent execution, which breaks ties.
    pub id: String,
}

/// A failed agent execution.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct AgentFailure {
    /// The agent execution.
    pub id: String,
    /// The conversation's tenant.
    pub tenant_id: String,
    /// The conversation.
    pub conversation_id: String,
    /// The first message of the turn.
    pub message_id: String,
    /// The parent agent execution; `None` for a turn.
    pub parent_execution_id: Option<String>,
    /// The agent.
    pub agent: String,
    /// The code of the `error` event.
    pub error_code: Option<String>,
    /// The beginning of the message of the `error` event.
    pub error_message: Option<String>,
    /// LLM calls of the last step that called a model; 0 when no model was called.
    #[sqlx(try_from = "i64")]
    pub step_calls: u32,
    /// The time of the beginning.
    pub started_at: DateTime<Utc>,
    /// The time of the failure.
    pub finished_at: DateTime<Utc>,
}

impl AgentFailure {
    /// Returns the tenant's name for the conversation.
    pub fn conversation_name(&self) -> &str {
        ConversationName::of_id(&self.conversation_id)
    }

    /// Returns the cursor of the row.
    pub fn cursor(&self) -> FailureCursor {
        FailureCursor {
            finished_at: self.finished_at,
            id: self.id.clone(),
        }
    }
}

/// The number of failures of an agent with a code.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct FailureCount {
    /// The agent.
    pub agent: String,
    /// The code of the `error` events.
    pub error_code: Option<String>,
    /// The number of failed agent executions.
    #[sqlx(try_from = "i64")]
    pub failures: u64,
    /// The time of the oldest counted failure.
    pub first_at: DateTime<Utc>,
    /// The time of the newest counted failure.
    pub last_at: DateTime<Utc>,
}

impl FailureCount {
    /// The most failures in a count. The limit keeps the time of counting bounded.
    pub const MAX_COUNTED: u32 = 100_000;
}
