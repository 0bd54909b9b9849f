//! The wait of a call before its tool begins.

use std::sync::{Arc, Mutex, PoisonError};

/// The reason why the tool of a call has not begun, if the call still waits. A call that runs out of time while it waits was
/// certainly not called, whatever the effect of its tool. Clones share the wait.
#[derive(Debug, Clone, Default)]
pub struct Wait(Arc<Mutex<Option<String>>>);

impl Wait {
    /// Makes the wait of a call whose tool has not begun. See [`Self::begin`].
    pub fn of(reason: impl Into<String>) -> Self {
        let wait = Self::default();
        wait.begin(reason);
        wait
    }

    /// The call waits, and its tool has not begun. `reason` completes the words "the call waited for …".
    pub fn begin(&self, reason: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.into());
    }

    /// The tool may begin from now on.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the reason of a wait that has not ended.
    pub fn reason(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
