//! What is accepted and not finished, for the gateway's reconciler.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{FailureCode, OnBusy};

use super::{Result, conversations::UnfinishedTurn, lists::Conversation};

/// Finds what was accepted and has not ended, and notes what was done about it. For gateways.
///
/// A conversation is looked at when a message of it waits, or a turn of it runs, and nothing has happened for a while.
/// All gateways share one schedule, which is a table.
#[async_trait]
pub trait Reconciliation: Send + Sync {
    /// Returns the conversations to look at now: those that are due longest, these first; none when a gateway has asked after
    /// `asked_before`. None of them is returned again before `again`.
    async fn due_checks(&self, pace: &CheckPace) -> Result<Vec<DueCheck>>;

    /// Returns what has not ended in the conversation. `None` when everything has, or there is no such conversation:
    /// then it is not looked at again.
    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>>;

    /// Gives back what [`Self::due_checks`] has returned and nobody has looked at. It is due since the same time as
    /// before.
    async fn put_back_checks(&self, rest: &[DueCheck]) -> Result<()>;

    /// Notes what was done about a conversation.
    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()>;

    /// Ends the turn of a message as failed. A message that waits is taken into a turn for this. False when the turn
    /// has ended, or when another one runs and this one has not begun.
    async fn fail_turn(
        &self,
        conversation: &Conversation,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<bool>;
}

/// How often conversations are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckPace {
    /// The time now.
    pub now: DateTime<Utc>,
    /// A gateway that asked after this time has the turn; another one gets nothing.
    pub asked_before: DateTime<Utc>,
    /// Only a conversation in which nothing has happened since.
    pub stalled_since: DateTime<Utc>,
    /// When these may be looked at again.
    pub again: DateTime<Utc>,
    /// The most conversations.
    pub limit: u32,
}

/// A conversation to look at.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DueCheck {
    /// The conversation.
    pub conversation_id: String,
    /// The time since which it is due.
    pub due_at: DateTime<Utc>,
}

/// What has not ended in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The conversation.
    pub conversation: Conversation,
    /// The turn that has begun.
    pub turn: Option<UnfinishedTurn>,
    /// Messages that wait, in order, the first hundred.
    pub waiting: Vec<WaitingMessage>,
    /// What was noted last.
    pub noted: CheckNote,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WaitingMessage {
    /// Its id.
    pub id: String,
    /// What it does when a turn runs.
    #[sqlx(try_from = "String")]
    pub on_busy: OnBusy,
    /// When it was stored.
    #[sqlx(rename = "created_at")]
    pub since: DateTime<Utc>,
}

/// What was done about a conversation so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct CheckNote {
    /// How often a workflow was started for it since its last event.
    #[sqlx(try_from = "i64")]
    pub starts: u32,
    /// Its last event when that was counted.
    #[sqlx(try_from = "i64")]
    pub last_sequence: u32,
    /// Messages that were stored before this time were signalled again.
    pub signalled_until: Option<DateTime<Utc>>,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    /// Its code.
    pub code: FailureCode,
    /// A sentence for people.
    pub message: &'static str,
}
