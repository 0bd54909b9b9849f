//! The fixed settings of a chat, and its exit codes.

use everturn_client::state::EndKind;

use super::view::Look;

/// The exit code of a cancelled turn.
const CANCELLED: u8 = 3;

/// The exit code after a second Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// The fixed settings of a chat.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// The message of `everturn chat "message"`: the chat ends after its turn.
    pub(super) message: Option<String>,
    /// True when the chat approves every call.
    pub(super) approves_all: bool,
    /// True when the user's tools run without a question.
    pub(super) runs_tools: bool,
    pub(super) look: Look,
}

/// Returns the exit code after a turn.
pub(super) fn code_of(outcome: EndKind) -> u8 {
    match outcome {
        EndKind::Complete => 0,
        EndKind::Error => 1,
        EndKind::Cancelled => CANCELLED,
    }
}
