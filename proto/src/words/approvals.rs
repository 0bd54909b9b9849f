//! Words about approvals: how one stands, and what a person may decide.

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

/// Why a turn refuses an answer to an approval. Each is the first word of the message with which the update
/// `resolve_approval` is refused.
pub mod refusal {
    /// No call with this id waits now.
    pub const UNKNOWN: &str = "approval_unknown";
    /// The approval was answered before.
    pub const ANSWERED: &str = "approval_answered";
    /// The approval was answered, and the answer is not stored yet.
    pub const BEING_STORED: &str = "approval_being_stored";
    /// The answer is for another input than the call's.
    pub const MISMATCH: &str = "approval_mismatch";
    /// The answer itself is wrong.
    pub const INVALID: &str = "approval_invalid";
}
