//! Words about approvals: the states of an approval, and the decisions of a person.

use std::fmt::Display;

words! {
    /// The state of a tool execution's approval.
    pub enum ApprovalState {
        /// The tool runs without an approval.
        NotNeeded = "",
        /// A person has been asked.
        Pending = "pending",
        /// The tool may run.
        Approved = "approved",
        /// A person refused.
        Denied = "denied",
        /// A person declined to answer a question of the tool. The tool may go on without the answer.
        Declined = "declined",
        /// Nobody answered in time.
        Expired = "expired",
        /// The turn ended before a person answered.
        Cancelled = "cancelled",
    }
}

impl ApprovalState {
    /// The states in which the tool may run. The SQL for the claim of a tool uses this list.
    pub const RUNNABLE: [Self; 3] = [Self::NotNeeded, Self::Approved, Self::Declined];

    /// True when the tool may run.
    pub fn lets_run(&self) -> bool {
        Self::RUNNABLE.contains(self)
    }

    /// True when the approval was requested and is no longer open. A state unknown to this version is a newer version's
    /// answer, and counts as answered.
    pub fn is_answered(&self) -> bool {
        match self {
            Self::NotNeeded | Self::Pending => false,
            Self::Approved
            | Self::Denied
            | Self::Declined
            | Self::Expired
            | Self::Cancelled
            | Self::Unknown(_) => true,
        }
    }
}

words! {
    /// The decision of a person, given with `resolve_approval`.
    pub enum Decision {
        /// The tool runs.
        Approve = "approve",
        /// The tool does not run, and the model learns of the refusal.
        Deny = "deny",
    }
}

words! {
    /// The people who may approve a call.
    pub enum ApprovalBy {
        /// Every person who may answer approvals.
        Anyone = "",
        /// Every person who may answer approvals, except the senders of the turn's messages.
        Other = "other",
    }
}

words! {
    /// The sources from which a turn takes an answer to an approval.
    pub enum AnswersFrom {
        /// Answers of a gateway, and answers of an operator through the engine. Every answer has the hash.
        Engine = "engine",
        /// Only answers that a gateway has noted in the store.
        Gateway = "gateway",
    }
}

words! {
    /// The policy for a call of a tool with another definition than at the conversation's last use of the tool.
    pub enum OnDefinitionChange {
        /// The call runs, unless a person has approved the call with the other definition.
        Run = "run",
        /// A person must approve the call.
        Ask = "ask",
        /// The call does not run.
        Refuse = "refuse",
    }
}

/// The value of `resolved_by` for an answer through the engine, where no gateway has authenticated the sender.
pub const OPERATOR: &str = "operator";
/// The name of the engine as the source of an operator's answer.
pub const THROUGH_ENGINE: &str = "engine";

words! {
    /// The reason why a turn refuses an answer to an approval.
    pub enum ApprovalRefusal {
        /// No call with the answer's execution id waits for an approval.
        NotWaiting = "approval_unknown",
        /// The approval was answered before.
        Answered = "approval_answered",
        /// The approval was answered, and the store does not have the answer yet.
        BeingStored = "approval_being_stored",
        /// A newer answer of a person came before the answer was stored, and was stored instead.
        Replaced = "approval_replaced",
        /// The answer has no hash, or a hash that differs from the hash of the call's input.
        Mismatch = "approval_mismatch",
        /// The answer itself is wrong.
        Invalid = "approval_invalid",
        /// The approval needs a person who sent no message of the turn; the answer's sender did, or is unknown.
        NeedsOther = "approval_needs_other",
        /// No gateway has noted the answer, and the call takes only answers of gateways.
        NotThroughGateway = "approval_not_through_gateway",
    }
}

impl ApprovalRefusal {
    /// Returns the message with which the update `resolve_approval` is refused: the word, and a sentence for people.
    pub fn message(&self, sentence: impl Display) -> String {
        format!("{self}: {sentence}")
    }

    /// Reads the word from a message of [`ApprovalRefusal::message`].
    pub fn of_message(message: &str) -> Self {
        message.split(':').next().unwrap_or(message).into()
    }
}
