//! A number that rises while a test runs, and that the test waits for.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::wait;

/// Counts what happens in other tasks of a test.
#[derive(Debug, Default)]
pub struct Count(AtomicUsize);

impl Count {
    /// It has happened once more.
    pub fn rise(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until it has happened so many times more than now. `what` says what that is.
    pub async fn risen_by(&self, more: usize, what: &str) {
        let enough = self.0.load(Ordering::Relaxed) + more;
        wait::until(&format!("{enough} {what}"), || async {
            (self.0.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }
}
