//! Tool calls that someone outside answers: a person approves them, or the client runs them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{ApprovalState, ToolKind, ToolStatus};

use super::{
    Access, NewAuditEntry, PageLimit, Result,
    tools::{ToolEnd, ToolRecord},
};
use crate::rows::tools::ToolColumns;

/// What turns ask of someone outside: approvals by a person, results of client tools. For gateways.
#[async_trait]
pub trait OutsideTools: Send + Sync {
    /// Returns the calls of the conversation that wait for an approval or for the client's result, oldest first, up to
    /// `limit`.
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<OutsideTool>>;

    /// Returns one call, waiting or not; `None` when the conversation has no such call.
    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>>;

    /// Records how a tool ended that `sender` ran, when the call is the sender's and has not ended, and returns the call
    /// as it is stored then: the first result wins. `None` when the conversation has no such call.
    async fn store_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        sender: ResultSender<'_>,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>>;

    /// Notes who gives an answer to an approval, before it goes through the engine: the store takes the name from here when
    /// the answer is saved. The same answer may be noted again. The entry of the audit trail is stored together with the note.
    async fn note_answer(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        answer: NewAnswer<'_>,
        audit: Option<&NewAuditEntry>,
    ) -> Result<NotedAnswer>;

    /// Has one client run a call that waits for a client: until `until` no other one gets the claim. The claimant may claim
    /// again before and after that, which moves the time. `None` when the conversation has no such call, or the call
    /// waits no more.
    async fn claim_client_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        claimant: &str,
        until: DateTime<Utc>,
    ) -> Result<Option<ClientToolClaim>>;
}

/// An answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewAnswer<'a> {
    /// Its id (`ids::answer_id`), which follows from all that it says.
    pub id: &'a str,
    /// Who gives it, as the gateway has authenticated them; `None` when nobody is known.
    pub answered_by: Option<&'a str>,
    /// True when it lets the call run.
    pub approves: bool,
}

/// What became of a note of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedAnswer {
    /// It is noted.
    Noted,
    /// It is not: somebody has to approve who is known and has sent no message of the turn.
    NeedsOther,
    /// It is not: there is no such call, or there are as many answers to it as may be.
    TooMany,
}

/// Answer to a claim of a client tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientToolClaim {
    /// The claimant is to run it.
    Run {
        /// True when another claimant had it before, whose time is over: the tool may have had its effect.
        is_repeated: bool,
    },
    /// Another claimant runs it.
    Held {
        /// When the claim ends, unless the client claims the call again.
        until: DateTime<Utc>,
    },
}

/// Who sends a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSender<'a> {
    /// The client, for whom the call waits.
    Client,
    /// The worker of a remote tool, while the call runs.
    RemoteTool {
        /// The workflow run that claimed the call. When another run has claimed it since, the result is refused
        /// (invariant 6, done once).
        run_id: &'a str,
    },
}

/// A tool call as someone outside sees it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct OutsideTool {
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution that asked.
    pub agent_execution_id: String,
    /// The call and how it stands.
    #[sqlx(flatten, try_from = "ToolColumns")]
    pub record: ToolRecord,
    /// When it was asked for.
    #[sqlx(rename = "created_at")]
    pub requested_at: DateTime<Utc>,
    /// The time until which it is waited for.
    pub expires_at: Option<DateTime<Utc>>,
}

impl OutsideTool {
    /// True while a person must approve it.
    pub fn needs_approval(&self) -> bool {
        self.record.approval == ApprovalState::Pending && self.record.status == ToolStatus::Pending
    }

    /// True once it is waited for no longer. The turn may not have noticed yet: its worker may be away.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// True while the client is to run it.
    pub fn needs_result(&self) -> bool {
        self.record.call.kind() == ToolKind::Client
            && self.record.status == ToolStatus::Pending
            && self.record.approval.lets_run()
    }
}
