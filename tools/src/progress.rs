//! The progress of a call. The attempt's heartbeats send it to the engine, and `temporal workflow describe` shows it.

use std::sync::{Arc, Mutex, PoisonError};

use everturn_untrusted::cut;

/// The longest progress text, in characters, because the engine stores every heartbeat.
const MAX_CHARS: usize = 200;

/// The latest progress of a tool. Clones share the progress.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Option<String>>>);

impl Progress {
    /// Reports the progress of the call in a few words, like `3/10 copying`. Longer texts are cut.
    pub fn report(&self, words: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut(words, MAX_CHARS));
    }

    /// Returns the latest report.
    pub fn latest(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_word_is_kept_and_bounded() {
        let progress = Progress::default();
        assert_eq!(progress.latest(), None);
        progress.clone().report("1/2");
        progress.report(&"x".repeat(10_000));
        assert_eq!(progress.latest().unwrap().chars().count(), MAX_CHARS + 1);
    }
}
