//! Accepted messages and turns without an end, and hooks after turns without a workflow, for the gateway's reconciler.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{FailureCode, OnBusy};

use super::{Result, conversations::UnfinishedTurn, lists::Conversation};

/// Finds accepted messages and turns without an end, and hooks without a workflow. Notes the reconciler's work. For
/// gateways.
///
/// A conversation is due for a check if it has a waiting message or a running turn, and no activity for a while. Every
/// gateway shares one schedule, a table. A conversation leaves the table with the end of its turn. A conversation whose
/// turn makes progress again, or that was removed, leaves the table when its check is due.
#[async_trait]
pub trait Reconciliation: Send + Sync {
    /// Begins a look, and schedules checks of stalled conversations. Returns false if a gateway has begun a look after
    /// `asked_before`: then the other gateway has the checks.
    ///
    /// A call reads at most `walk` running turns and as many conversations with a waiting message. The next call goes on
    /// with the others.
    async fn begin_look(&self, pace: &CheckPace) -> Result<bool>;

    /// Returns due conversations, the longest due first. A returned conversation is not due again before `again`.
    /// Removes due checks of conversations that have not stalled any more.
    async fn due_checks(&self, pace: &CheckPace) -> Result<DueBatch>;

    /// Returns the conversation's unfinished messages and turn. Returns `None`, and ends the checks, for a missing
    /// conversation or without unfinished work.
    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>>;

    /// Gives back unchecked conversations from [`Self::due_checks`]. Their due time stays unchanged.
    async fn put_back_checks(&self, rest: &[DueCheck]) -> Result<()>;

    /// Notes the reconciler's work on a conversation.
    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()>;

    /// Returns the hooks after turns that have waited for their workflow since `due_before`, the longest waiting first, at
    /// most `limit`. The engine may have lost the run of the conversation between the end of the turn and the start of
    /// the hooks' workflow.
    async fn due_hooks(&self, due_before: DateTime<Utc>, limit: u32) -> Result<Vec<DueHooks>>;

    /// Lets hooks wait for their workflow since `due_at`, or no longer if `due_at` is `None`. Returns false, and changes
    /// nothing, if the hooks have begun, or were removed with their conversation.
    async fn note_hooks(
        &self,
        agent_execution_id: &str,
        due_at: Option<DateTime<Utc>>,
    ) -> Result<bool>;

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
    /// A gateway that began a look after this time has the checks, and no other gateway may begin a look.
    pub asked_before: DateTime<Utc>,
    /// Only conversations without activity since this time are due.
    pub stalled_since: DateTime<Utc>,
    /// Only conversations without activity since this time may count as idle.
    pub idle_since: DateTime<Utc>,
    /// The next time at which the returned conversations are due.
    pub again: DateTime<Utc>,
    /// The most conversations that a look reads to find the stalled conversations.
    pub walk: u32,
    /// The most due checks in one call.
    pub limit: u32,
}

/// Some of the due conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueBatch {
    /// The conversations.
    pub checks: Vec<DueCheck>,
    /// True when more conversations may be due.
    pub has_more: bool,
}

/// A conversation due for a check.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DueCheck {
    /// The conversation.
    pub conversation_id: String,
    /// The time since which the conversation is due.
    pub due_at: DateTime<Utc>,
    /// A message has waited for long, and no note says that a running workflow knows the message. Or the running turn was
    /// cancelled and still runs.
    pub has_unsignalled: bool,
    /// The running turn waits for no LLM call, tool, person or client since `idle_since`. The workflow has to act.
    pub is_idle: bool,
}

/// The hooks after a turn, or after a sub-agent, that wait for their workflow.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DueHooks {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The conversation.
    pub conversation_id: String,
    /// The first message of the turn.
    pub message_id: String,
    /// The completed agent execution.
    pub agent_execution_id: String,
    /// The hash of the definition to which the agent execution was pinned. The definition names the hooks.
    pub agent_hash: String,
    /// The number of saved LLM calls. The last one has the answer.
    #[sqlx(try_from = "i64")]
    pub steps: u32,
    /// The task queue of the workers that run the hooks; `None` for the queue of the workflows.
    pub tool_queue: Option<String>,
}

/// The unfinished work of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The conversation.
    pub conversation: Conversation,
    /// The unfinished turn.
    pub turn: Option<UnfinishedTurn>,
    /// Why the unfinished turn must end; `None` for a turn that nobody has cancelled, and without a turn.
    pub cancel_reason: Option<String>,
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
