//! The known contexts of a worker.

mod checks;
#[path = "../../../../activities/src/think/known_contexts.rs"]
#[allow(dead_code)]
mod known_contexts;

/// The size of a message.
mod window {
    use everturn_store::ContextMessage;

    pub(super) fn message_bytes(message: &ContextMessage) -> usize {
        message.content.len()
    }
}

pub use self::checks::*;
