//! The window of messages that a model is given.

use everturn_proto::words::MessageRole;

use crate::api::ContextMessage;

/// Turns `newest_first` around. When there are older messages than these, what is cut is cut before a user's message,
/// so that no tool call loses what came before it in its turn. A turn longer than the window leaves no such place and
/// keeps its newest messages.
pub(crate) fn context_window(
    mut newest_first: Vec<ContextMessage>,
    is_cut: bool,
) -> Vec<ContextMessage> {
    if is_cut {
        let is_users = |message: &ContextMessage| message.role == MessageRole::User;
        if let Some(first_user) = newest_first.iter().rposition(is_users) {
            newest_first.truncate(first_user + 1);
        }
    }
    newest_first.reverse();
    newest_first
}
