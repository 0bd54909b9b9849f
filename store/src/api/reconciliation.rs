//! Accepted messages and turns without an end, for the gateway's reconciler.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{FailureCode, OnBusy};

use super::{Result, conversations::UnfinishedTurn, lists::Conversation};

/// Finds accepted messages and turns without an end, and notes the reconciler's work. For gateways.
///
/// A conversation is due for a check if it has a waiting message or a running turn, and no activity for a while. Every
/// gateway shares one schedule, a table.
#[async_trait]
pub trait Reconciliation: Send + Sync {
    /// Returns the due conversations, the longest due first. The list is empty if a gateway has asked after
    /// `asked_before`. A returned conversation is not due again before `again`.
    async fn due_checks(&self, pace: &CheckPace) -> Result<Vec<DueCheck>>;

    /// Returns the conversation's unfinished messages and turn. Returns `None`, and ends the checks, for a missing
    /// conversation or without unfinished work.
    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>>;

    /// Gives back unchecked conversations from [`Self::due_checks`]. Their due time stays unchanged.
    async fn put_back_checks(&self, rest: &[DueCheck]) -> Result<()>;

    /// Notes the reconciler's work on a conversation.
    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()>;

    /// Ends the turn of a message as failed. A waiting message becomes a turn for this purpose. Returns false if the
    /// turn has ended, or if another turn runs and the message's turn has not begun.
    async fn fail_turn(
        &self,
        conversation: &Conversation,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<bool>;
}

/// The pace of the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckPace {
    /// The present time.
    pub now: DateTime<Utc>,
    /// A gateway that asked after this time has the checks, and any other gateway gets an empty list.
    pub asked_before: DateTime<Utc>,
    /// Only conversations without activity since this time are due.
    pub stalled_since: DateTime<Utc>,
    /// The next time at which the returned conversations are due.
    pub again: DateTime<Utc>,
    /// The most conversations.
    pub limit: u32,
}

/// A conversation due for a check.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DueCheck {
    /// The conversation.
    pub conversation_id: String,
    /// The time since which the conversation is due.
    pub due_at: DateTime<Utc>,
}

/// The unfinished work of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The conversation.
    pub conversation: Conversation,
    /// The unfinished turn.
    pub turn: Option<UnfinishedTurn>,
    /// The first hundred waiting messages, in order.
    pub waiting: Vec<WaitingMessage>,
    /// The last note.
    pub noted: CheckNote,
}

/// A waiting message.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WaitingMessage {
    /// Its id.
    pub id: String,
    /// The message's effect on a running turn.
    #[sqlx(try_from = "String")]
    pub on_busy: OnBusy,
    /// The time of storing.
    #[sqlx(rename = "created_at")]
    pub since: DateTime<Utc>,
}

/// The reconciler's work on a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct CheckNote {
    /// The number of workflow starts for the conversation since its last event.
    #[sqlx(try_from = "i64")]
    pub starts: u32,
    /// The conversation's last event at the time of the count.
    #[sqlx(try_from = "i64")]
    pub last_sequence: u32,
    /// The reconciler has signalled messages stored before this time again.
    pub signalled_until: Option<DateTime<Utc>>,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    /// The code.
    pub code: FailureCode,
    /// A sentence for people.
    pub message: &'static str,
}
