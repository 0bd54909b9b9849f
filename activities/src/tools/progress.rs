//! How far a call is. The attempt's heartbeats send it to the engine, where `temporal workflow describe` shows it.

use std::sync::{Arc, Mutex, PoisonError};

use super::checked::cut;

/// The longest progress, in characters. The engine stores each heartbeat.
const MAX_CHARS: usize = 200;

/// What a tool said last of its progress. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Option<String>>>);

impl Progress {
    /// Says how far the call is, in a few words: `3/10 copying`. Longer ones are cut.
    pub fn report(&self, words: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut(words, MAX_CHARS));
    }

    /// What was said last.
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
