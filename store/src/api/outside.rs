//! Tool calls that wait for the outside: a person approves them, or the client runs them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    ConversationName, Json,
    event::OutcomeSettled,
    turn::{ResolveApproval, SavedApproval},
    words::{ApprovalState, ToolKind, ToolOutcome, ToolStatus},
};

use super::{
    Access, NewAuditEntry, PageLimit, Result,
    tools::{ToolEnd, ToolRecord},
};

/// Requests of turns to the outside: approvals by a person, results of client tools. For gateways.
#[async_trait]
pub trait OutsideTools: Send + Sync {
    /// Returns the conversation's calls that wait for an approval or a client's result, oldest first, up to `limit`.
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<OutsideTool>>;

    /// Returns a call, waiting or not; `None` if the conversation has no such call.
    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>>;

    /// Records the end of a tool execution by `sender`, with the checkpoint `tool_complete`, if the sender runs the call
    /// and the call has not ended. Returns the stored call: the first result wins. Returns `None` if the conversation
    /// does not have the call.
    async fn store_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        sender: ResultSender<'_>,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>>;

    /// Notes an answer and its person before the answer goes through Temporal. When a worker saves an answer of a
    /// gateway, the store takes the newest noted answer of a person with the right to give it, and the person's name. A
    /// repeated note makes the answer the newest again. The audit entry is stored together with the note.
    async fn note_answer(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        answer: NewAnswer<'_>,
        audit: Option<&NewAuditEntry>,
    ) -> Result<NotedAnswer>;

    /// Settles the outcome of a call whose outcome is unknown: appends the event, ends the call as the person says, and puts
    /// the end into the transcript, from which later model calls are made. The audit entry is stored together with the
    /// outcome. A repeated request changes nothing but the audit trail, and gets the stored event.
    async fn settle_outcome(
        &self,
        access: &Access,
        conversation_id: &str,
        outcome: &PersonsOutcome,
        audit: &NewAuditEntry,
    ) -> Result<SettledOutcome>;

    /// Returns the tenant's calls that wait for an approval, the nearest deadline first, up to `limit`, and true if more
    /// calls wait. An owner gets the calls of the owner's conversations, and the calls that need another person
    /// (`ApprovalBy::Other`). `after` is the cursor of the last call of the page before.
    async fn approval_inbox(
        &self,
        access: &Access,
        after: Option<&InboxCursor>,
        limit: PageLimit,
    ) -> Result<(Vec<InboxCall>, bool)>;

    /// Returns the inputs that people propose for waiting calls that need two other people, the newest first. A call is
    /// named by its conversation and its tool execution. The caller must have read the calls before.
    async fn proposals(&self, calls: &[(String, String)]) -> Result<Vec<Proposal>>;

    /// Returns the stored state of a call's approval, and the id of the stored answer if a gateway has noted the answer
    /// (`ids::answer_id`). `None` for an unknown call. The caller must have read the call before.
    async fn saved_answer(
        &self,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<SavedApproval>>;

    /// Claims a call for one client until `until`. No other client gets the claim before. The claimant may claim again
    /// at any time, which moves the end. Returns `None` if the conversation has no such call, or if the call waits no
    /// more.
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewAnswer<'a> {
    /// The id (`ids::answer_id`), computed from the whole answer.
    pub id: &'a str,
    /// The approver, authenticated by the gateway; `None` for an unknown approver.
    pub answered_by: Option<&'a str>,
    /// True when the approver is a person. A key without an owner is none: nobody knows who has the key.
    pub is_person: bool,
    /// The answer itself.
    pub answer: &'a ResolveApproval,
}

/// The result of noting an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedAnswer {
    /// The note is stored.
    Noted,
    /// The note is stored, and a second other person must approve the changed input. The answer must not reach the turn.
    NeedsSecond,
    /// The note is refused: the approver must be a known person who neither owns the conversation nor has sent a message
    /// of the turn.
    NeedsOther,
    /// The note is refused: the call is unknown, or has the most answers already.
    TooMany,
}

/// The outcome of a tool call with an unknown outcome, as a person says.
#[derive(Debug, Clone, PartialEq)]
pub struct PersonsOutcome {
    /// The tool execution.
    pub execution_id: String,
    /// Whether the call has happened.
    pub outcome: ToolOutcome,
    /// The result of the call, if the person knows the result.
    pub result: Option<Json>,
    /// The person's words; may be empty.
    pub comment: String,
    /// The person, authenticated by the gateway; empty if unknown.
    pub settled_by: String,
}

/// The result of settling an outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum SettledOutcome {
    /// The outcome is settled as requested, now or before. The event tells who settled the outcome first.
    Settled(OutcomeSettled),
    /// The outcome is not settled as requested.
    Refused(OutcomeRefusal),
}

/// The reason why an outcome is not settled as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeRefusal {
    /// The caller's conversation has no such call.
    NoCall,
    /// The outcome of the call is not unknown, or its observe is not saved yet.
    Known,
    /// A person has settled the outcome in another way.
    SettledOtherwise,
}

/// A call in the inbox of approvals.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxCall {
    /// The conversation.
    pub conversation_id: String,
    /// The agent that calls the tool.
    pub agent: String,
    /// The call.
    pub tool: OutsideTool,
}

impl InboxCall {
    /// Returns the tenant's name for the conversation.
    pub fn conversation_name(&self) -> &str {
        ConversationName::of_id(&self.conversation_id)
    }

    /// Returns the cursor of the call.
    pub fn cursor(&self) -> InboxCursor {
        InboxCursor {
            expires_at: self.tool.expires_at.unwrap_or_default(),
            execution_id: self.tool.record.call.execution_id.clone(),
        }
    }
}

/// A cursor in the inbox of approvals, which is ordered by deadlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxCursor {
    /// The deadline of the call.
    pub expires_at: DateTime<Utc>,
    /// The tool execution, which breaks ties.
    pub execution_id: String,
}

/// Another input for a waiting call, which one person has approved and a second person must approve.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The conversation of the call.
    pub conversation_id: String,
    /// The call.
    pub execution_id: String,
    /// The person.
    pub proposed_by: String,
    /// The time of the proposal.
    pub proposed_at: DateTime<Utc>,
    /// The input, in canonical form.
    pub input: Json,
}

/// The result of claiming a client tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientToolClaim {
    /// The claimant must run the call.
    Run {
        /// True after the expired claim of another claimant: the tool may have had its effect.
        is_repeated: bool,
    },
    /// Another claimant runs the call.
    Held {
        /// The end of the claim, unless the client claims the call again.
        until: DateTime<Utc>,
    },
}

/// The sender of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSender<'a> {
    /// The client. The call waits for the client.
    Client,
    /// The worker of a remote tool, during the call.
    RemoteTool {
        /// The workflow run that claimed the call. If a newer run has claimed the call, the store refuses the result
        /// (invariant 6, done once).
        run_id: &'a str,
    },
}

/// A tool call for readers outside.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideTool {
    /// The first message of the turn.
    pub message_id: String,
    /// The agent execution of the call.
    pub agent_execution_id: String,
    /// The call and its state.
    pub record: ToolRecord,
    /// The time of the request.
    pub requested_at: DateTime<Utc>,
    /// The end of the wait.
    pub expires_at: Option<DateTime<Utc>>,
    /// True after the end of the wait, by the clock that gave `expires_at`. The turn may be late to notice if its worker
    /// is away.
    pub is_expired: bool,
}

impl OutsideTool {
    /// Returns true during the wait for a person's approval.
    pub fn needs_approval(&self) -> bool {
        self.record.approval == ApprovalState::Pending && self.record.status == ToolStatus::Pending
    }

    /// Returns true during the wait for the client's result.
    pub fn needs_result(&self) -> bool {
        self.record.call.kind() == ToolKind::Client
            && self.record.status == ToolStatus::Pending
            && self.record.approval.lets_run()
    }
}
