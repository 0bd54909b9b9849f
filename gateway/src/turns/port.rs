//! The port to the engine: passes messages and answers to turns, and starts, cancels and terminates turns. Starts the
//! hooks after turns.

use std::{collections::HashSet, error::Error};

use async_trait::async_trait;
use everturn_proto::{
    turn::ResolveApproval,
    words::{self, ApprovalRefusal},
};
use everturn_store::{Conversation, DueHooks, ResumePoint};
use serde::Deserialize;
use utoipa::ToSchema;

/// Starts and signals turns. The gateway stores a message before the call, so every call may be repeated (invariant 9,
/// accepted means durable).
#[async_trait]
pub trait TurnStarter: Send + Sync {
    /// Rings at the conversation's workflow for a stored message. Without a workflow, starts the workflow with the turn of
    /// the message.
    async fn submit(&self, conversation: &Conversation, message_id: &str) -> Result<(), TurnError>;

    /// Rings at the conversation's workflow for a stored message. Returns false without a running workflow, and starts no
    /// workflow. Repeated calls for a message are one signal of a run.
    async fn signal(&self, conversation_id: &str, message_id: &str) -> Result<bool, TurnError>;

    /// Starts a workflow for stored messages, unless a workflow runs for the conversation.
    async fn start(
        &self,
        conversation: &Conversation,
        messages: StartMessages,
    ) -> Result<StartOutcome, TurnError>;

    /// Starts the workflow of the hooks after a turn, unless the engine has ever had the workflow. Therefore repeated calls
    /// run no hook twice.
    async fn start_hooks(&self, hooks: &DueHooks) -> Result<HooksOutcome, TurnError>;

    /// Prepares the engine for turns, because the engine may be new.
    async fn prepare(&self) -> Result<(), TurnError>;

    /// Returns the running workflow of the conversation; `None` when no workflow runs.
    async fn workflow(&self, conversation_id: &str) -> Result<Option<RunningWorkflow>, TurnError>;

    /// Returns the conversations with a running workflow in the engine's list, with a single call. The list may be behind
    /// the engine: only [`Self::workflow`] proves that no workflow runs.
    async fn running(&self, conversation_ids: &[String]) -> Result<HashSet<String>, TurnError>;

    /// Tells the conversation's workflow of the stored cancel of a message. Returns false without a running workflow.
    /// Repeated calls for a message are one signal of a run.
    async fn cancel(
        &self,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<bool, TurnError>;

    /// Gives a person's answer to the turn that asked, and waits until the turn has taken or refused the answer.
    /// `sub_agent` is the tool execution that started the asking sub-agent; `None` if the turn's own agent asked.
    async fn resolve_approval(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        answer: ResolveApproval,
    ) -> Result<ApprovalOutcome, TurnError>;

    /// Tells the turn about the stored result of a client tool. Without a running turn, the call succeeds, because a
    /// resumed turn finds the result. `sub_agent` has the meaning of `sub_agent` in [`Self::resolve_approval`].
    async fn tool_result(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        execution_id: &str,
    ) -> Result<(), TurnError>;

    /// Ends the conversation's workflow at once, without a last save, because the conversation is removed. Without a
    /// workflow, the call succeeds.
    async fn terminate(&self, conversation_id: &str, reason: &str) -> Result<(), TurnError>;

    /// Deletes the engine's data about a conversation after the workflow's end: the histories of turns, sub-agents and
    /// hooks. A later try deletes histories that the engine does not list yet.
    async fn delete_runs(&self, conversation_id: &str) -> Result<(), TurnError>;
}

/// The first message of a workflow that is started. The value has only an id, because the store has the messages
/// (invariant 4, linear history).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartMessages {
    /// The message of the first turn.
    pub first: String,
    /// The step where the first turn continues: the step of the turn's last checkpoint, or 0. `None` for a new turn.
    pub goes_on_at: Option<u32>,
    /// Other messages may wait: the run looks at its inbox as soon as the first turn has begun.
    pub has_waiting: bool,
}

impl StartMessages {
    /// Returns the first of the accepted and unfinished messages: the begun turn's message, otherwise the first waiting
    /// message. `None` without an unfinished message.
    pub fn unfinished(point: ResumePoint) -> Option<Self> {
        let mut waiting = point.waiting.into_iter();
        let (first, goes_on_at) = match point.turn {
            Some(turn) => (turn.message_id, Some(turn.checkpoint_step.unwrap_or(0))),
            None => (waiting.next()?, None),
        };
        Some(Self {
            first,
            goes_on_at,
            has_waiting: waiting.len() > 0,
        })
    }

    /// Returns the unfinished messages before a waiting message, as [`Self::unfinished`]. A message behind the waiting message
    /// in the order of the turns begins later. `None` without an earlier message.
    pub fn before(mut point: ResumePoint, message_id: &str) -> Option<Self> {
        let own = point.waiting.iter().position(|id| id == message_id);
        point.waiting.truncate(own.unwrap_or(usize::MAX));
        Self::unfinished(point)
    }
}

/// A running workflow of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningWorkflow {
    /// The attempt of the workflow task that waits or runs; 0 without a workflow task. The first attempt has the number
    /// 1, and the engine repeats a failed task for ever.
    pub task_attempt: u32,
}

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOutcome {
    /// A new workflow runs.
    Started,
    /// The running workflow has the same first message, because an earlier try of the request started the workflow.
    StartedBefore,
    /// Another workflow runs, so the engine started no workflow.
    Busy,
}

/// The result of the start of the hooks after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HooksOutcome {
    /// A new workflow runs the hooks.
    Started,
    /// The workflow of the hooks runs already.
    Runs,
    /// The workflow of the hooks has ended.
    Ended,
}

/// The engine did not take the call. A later try may succeed.
#[derive(Debug, thiserror::Error)]
#[error("the workflow engine is not available: {0}")]
pub struct TurnError(#[source] pub Box<dyn Error + Send + Sync>);

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

/// The effect of a message on a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// The message waits for the next turn.
    #[default]
    Queue,
    /// The message joins the running turn before the turn's next LLM call.
    Steer,
    /// The message ends the running turn and starts the next turn.
    Interrupt,
    /// The gateway refuses the message.
    Reject,
}

impl OnBusy {
    /// Returns the policy for the store.
    pub fn stored(self) -> words::OnBusy {
        match self {
            Self::Queue => words::OnBusy::Queue,
            Self::Steer => words::OnBusy::Steer,
            Self::Interrupt => words::OnBusy::Interrupt,
            Self::Reject => words::OnBusy::Reject,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use everturn_store::UnfinishedTurn;

    use super::*;

    #[test]
    fn a_message_begins_before_the_messages_behind_it() {
        let point = |turn: Option<&str>| ResumePoint {
            turn: turn.map(|id| UnfinishedTurn {
                message_id: id.to_owned(),
                checkpoint_step: None,
            }),
            waiting: ["a", "own", "b"].map(str::to_owned).to_vec(),
            has_begun: true,
        };
        let before = |point, id| StartMessages::before(point, id).map(|it| it.first);
        assert_eq!(before(point(None), "own").unwrap(), "a");
        assert_eq!(before(point(None), "a"), None, "nothing is earlier");
        assert_eq!(before(point(Some("turn")), "a").unwrap(), "turn");
        assert_eq!(before(point(None), "taken").unwrap(), "a");
    }
}
