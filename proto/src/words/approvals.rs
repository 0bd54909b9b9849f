//! Words about approvals: how one stands, and what a person may decide.

use std::fmt::Display;

words! {
    /// How the approval of a tool execution stands.
    pub enum ApprovalState {
        /// The tool runs without an approval.
        NotNeeded = "",
        /// A person has been asked.
        Pending = "pending",
        /// The tool may run.
        Approved = "approved",
        /// A person refused.
        Denied = "denied",
        /// Nobody answered in time.
        Expired = "expired",
        /// The turn ended before anybody answered.
        Cancelled = "cancelled",
    }
}

impl ApprovalState {
    /// The states in which the tool may run. The SQL that claims a tool takes its list from here.
    pub const RUNNABLE: [Self; 2] = [Self::NotNeeded, Self::Approved];

    /// True when the tool may run.
    pub fn lets_run(&self) -> bool {
        Self::RUNNABLE.contains(self)
    }

    /// True when an approval was asked for and nobody is asked any more. A state that this version does not know is a
    /// newer version's answer.
    pub fn is_answered(&self) -> bool {
        match self {
            Self::NotNeeded | Self::Pending => false,
            Self::Approved | Self::Denied | Self::Expired | Self::Cancelled | Self::Unknown(_) => {
                true
            }
        }
    }
}

words! {
    /// What a person decides with `resolve_approval`.
    pub enum Decision {
        /// The tool runs.
        Approve = "approve",
        /// The tool does not run, and the model is told.
        Deny = "deny",
    }
}

words! {
    /// Who may approve a call.
    pub enum ApprovalBy {
        /// Whoever may answer approvals.
        Anyone = "",
        /// Nobody who sent a message of the turn.
        Other = "other",
    }
}

words! {
    /// Which answers to an approval are taken.
    pub enum AnswersFrom {
        /// Answers of a gateway, and answers of an operator through the engine. All of them name the hash.
        Engine = "engine",
        /// Only those that a gateway has noted in the store.
        Gateway = "gateway",
    }
}

words! {
    /// What becomes of a call of a tool that has another definition than the one that its conversation has used before.
    pub enum OnDefinitionChange {
        /// It runs, unless a person has approved it with the other definition.
        Run = "run",
        /// A person is asked.
        Ask = "ask",
        /// It does not run.
        Refuse = "refuse",
    }
}

/// Who answered when the answer came through the engine, and no gateway has authenticated anybody.
pub const OPERATOR: &str = "operator";
/// The name of the engine, through which such an answer came.
pub const THROUGH_ENGINE: &str = "engine";

words! {
    /// Why a turn refuses an answer to an approval.
    pub enum ApprovalRefusal {
        /// No call with this id waits now.
        NotWaiting = "approval_unknown",
        /// The approval was answered before.
        Answered = "approval_answered",
        /// The approval was answered, and the answer is not stored yet.
        BeingStored = "approval_being_stored",
        /// The answer is for another input than the call's.
        Mismatch = "approval_mismatch",
        /// The answer itself is wrong.
        Invalid = "approval_invalid",
        /// Whoever answers has sent a message of the turn, or is not known, and somebody else has to approve.
        NeedsOther = "approval_needs_other",
        /// No gateway has noted the answer, and only those of gateways are taken.
        NotThroughGateway = "approval_not_through_gateway",
    }
}

impl ApprovalRefusal {
    /// Returns the message with which the update `resolve_approval` is refused: the word, and a sentence for people.
    pub fn message(&self, sentence: impl Display) -> String {
        format!("{self}: {sentence}")
    }

    /// Reads the word of such a message.
    pub fn of_message(message: &str) -> Self {
        message.split(':').next().unwrap_or(message).into()
    }
}
