//! The window of messages that a model is given.

use everturn_proto::words::MessageRole;

use crate::api::ContextMessage;

/// The newest `limit` of `newest_first`, oldest first. What is cut is cut before a user's message, so that no tool call
/// loses what came before it in its turn; a turn longer than the limit leaves no such place and keeps its newest
/// messages.
pub(crate) fn context_window(
    mut newest_first: Vec<ContextMessage>,
    limit: usize,
) -> Vec<ContextMessage> {
    if newest_first.len() > limit {
        newest_first.truncate(limit);
        let is_users = |message: &ContextMessage| message.role == MessageRole::User;
        if let Some(first_user) = newest_first.iter().rposition(is_users) {
            newest_first.truncate(first_user + 1);
        }
    }
    newest_first.reverse();
    newest_first
}
