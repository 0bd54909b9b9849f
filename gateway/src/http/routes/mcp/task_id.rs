//! The id of a task: the ids of a message and of its conversation. Every gateway reads the id, and keeps no tasks.

use crate::http::extract::{Name, checked_id};

/// A task, which is a message with its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskId {
    /// The name of the conversation.
    pub(super) conversation: Name,
    /// The message.
    pub(super) message_id: String,
}

impl TaskId {
    /// Reads an id; `None` for a text that is no task's id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Neither part can have an `@`.
        let (message_id, conversation) = text.split_once('@')?;
        Some(Self {
            conversation: Name::checked(conversation.to_owned()).ok()?,
            message_id: checked_id("message id", message_id.to_owned()).ok()?,
        })
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}@{}",
            self.message_id,
            self.conversation.as_str()
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_task_id_is_read_as_it_was_written_or_is_refused(text in "[a-z@.:/ ]{0,20}") {
            if let Some(task) = TaskId::parse(&text) {
                prop_assert_eq!(task.to_string(), text);
            }
        }
    }
}
