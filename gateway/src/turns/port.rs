//! The port to the engine: handing messages and answers to turns, starting, cancelling and terminating them.

use std::error::Error;

use async_trait::async_trait;
use everturn_proto::{
    turn::ResolveApproval,
    words::{self, ApprovalRefusal},
};
use everturn_store::{Conversation, ResumePoint};
use serde::Deserialize;
use utoipa::ToSchema;

/// Starts and signals turns. Called after the message is stored, so every call may be repeated
/// (invariant 9, accepted means durable).
#[async_trait]
pub trait TurnStarter: Send + Sync {
    /// Hands a stored message to the conversation's turn, starting one when none runs.
    async fn submit(
        &self,
        conversation: &Conversation,
        message_id: &str,
        on_busy: OnBusy,
    ) -> Result<(), TurnError>;

    /// Signals a stored message to the workflow of the conversation. Returns false when none runs, and starts none.
    async fn signal(
        &self,
        conversation_id: &str,
        message_id: &str,
        on_busy: OnBusy,
    ) -> Result<bool, TurnError>;

    /// Starts a workflow for stored messages, unless one runs for the conversation.
    async fn start(
        &self,
        conversation: &Conversation,
        messages: StartMessages,
    ) -> Result<StartOutcome, TurnError>;

    /// Makes the engine ready for turns, in case that it is a new one.
    async fn prepare(&self) -> Result<(), TurnError>;

    /// True when a workflow runs for the conversation.
    async fn is_running(&self, conversation_id: &str) -> Result<bool, TurnError>;

    /// Asks the turn of this message, and no other, to end. When the message still waits, its turn ends as it begins.
    async fn cancel(
        &self,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<CancelOutcome, TurnError>;

    /// Gives a person's answer to the turn that asked, and waits until it has taken or refused it. `sub_agent` is the
    /// tool execution that started the sub-agent which asked; it is `None` when the turn's own agent asked.
    async fn resolve_approval(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        answer: ResolveApproval,
    ) -> Result<ApprovalOutcome, TurnError>;

    /// Tells the turn that the result of a client tool is stored. It is no error when no turn runs, because a turn that
    /// is resumed finds the result. `sub_agent` means the same as in [`Self::resolve_approval`].
    async fn tool_result(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        execution_id: &str,
    ) -> Result<(), TurnError>;

    /// Ends the conversation's workflow at once, with nothing saved, because the conversation is removed. It is no
    /// error when there is no workflow.
    async fn terminate(&self, conversation_id: &str, reason: &str) -> Result<(), TurnError>;

    /// Has the engine delete what it keeps of the conversation, whose workflow was ended: the histories of its turns, its
    /// sub-agents and its hooks. What the engine does not find yet is deleted later.
    async fn delete_runs(&self, conversation_id: &str) -> Result<(), TurnError>;
}

/// The messages that a workflow is started for. It holds only ids, because the store has the messages (invariant 4,
/// linear history).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartMessages {
    /// The message whose turn comes first.
    pub first: String,
    /// The step at which that turn goes on: that of its last checkpoint, or 0. `None` when it has not begun.
    pub goes_on_at: Option<u32>,
    /// Messages that wait behind it, in order.
    pub waiting: Vec<String>,
}

impl StartMessages {
    /// What was accepted and has not ended: the turn that has begun, then the messages that wait. `None` when there is
    /// nothing.
    pub fn unfinished(point: ResumePoint) -> Option<Self> {
        let mut waiting = point.waiting.into_iter();
        let (first, goes_on_at) = match point.turn {
            Some(turn) => (turn.message_id, Some(turn.checkpoint_step.unwrap_or(0))),
            None => (waiting.next()?, None),
        };
        Some(Self {
            first,
            goes_on_at,
            waiting: waiting.collect(),
        })
    }
}

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOutcome {
    /// A workflow runs now.
    Started,
    /// The workflow that runs was started for the same first message, by an earlier try of the same request.
    StartedBefore,
    /// Another workflow runs, so nothing was started.
    Busy,
}

/// The engine did not take the call, and may take it later.
#[derive(Debug, thiserror::Error)]
#[error("the workflow engine is not available: {0}")]
pub struct TurnError(#[source] pub Box<dyn Error + Send + Sync>);

/// The result of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn has been told to end.
    Requested,
    /// No turn runs in the conversation.
    NotRunning,
}

/// The result of an answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// The turn has taken the answer.
    Taken,
    /// The turn refused the answer.
    Refused(ApprovalRefusal),
    /// No workflow runs for the conversation.
    NotRunning,
    /// No worker answered in time; the turn may still take the answer.
    Unanswered,
}

/// What a message does when a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// It waits for the next turn.
    #[default]
    Queue,
    /// It joins the running turn before its next LLM call.
    Steer,
    /// It ends the running turn and starts the next.
    Interrupt,
    /// It is not accepted.
    Reject,
}

impl OnBusy {
    /// Returns what signal `submit` says. A message that is to be rejected is never signalled while a turn runs.
    pub fn signalled(self) -> words::OnBusy {
        match self {
            Self::Queue | Self::Reject => words::OnBusy::Queue,
            Self::Steer => words::OnBusy::Steer,
            Self::Interrupt => words::OnBusy::Interrupt,
        }
    }

    /// Returns what the store keeps.
    pub fn stored(self) -> words::OnBusy {
        match self {
            Self::Reject => words::OnBusy::Reject,
            other => other.signalled(),
        }
    }

    /// Reads the stored policy.
    pub fn of_stored(stored: &words::OnBusy) -> Self {
        match stored {
            words::OnBusy::Steer => Self::Steer,
            words::OnBusy::Interrupt => Self::Interrupt,
            words::OnBusy::Reject => Self::Reject,
            words::OnBusy::Queue | words::OnBusy::Unknown(_) => Self::Queue,
        }
    }
}
