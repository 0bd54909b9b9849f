//! Generations and seals of agent executions, as seen by this process. Both survive a loss of the data in Redis.
//!
//! # What the fence holds (invariant 7, fenced deltas), and what not, after Redis has lost everything
//!
//! Redis keeps a mark for each agent execution: its newest generation and its last sealed step. The mark lives longer
//! than any text of the agent execution. After a loss of the mark:
//!
//! - A piece at an offset above 0 is never accepted, because its text is unknown. It raises the mark nevertheless, so
//!   a piece of generation 2 makes Redis refuse generation 1 again even if the piece itself fails with a gap.
//! - A process sends its own knowledge with each piece: generation 1 is refused in a process that has published,
//!   announced or followed generation 2.
//! - A follower never gets a text of an older generation of a step than its gateway has seen, neither live nor in a
//!   snapshot, whatever Redis has accepted.
//! - Not held here: a process that knows only generation 1 publishes again from offset 0 before the first piece of
//!   generation 2 since the loss. Redis accepts the piece and delivers it to followers whose gateways have not seen
//!   generation 2. A Redis restored to an older state behaves likewise. A reader that has seen generation 2 does not
//!   get the old piece: its gateway has asked the store since the reader came, and the store knows the newest
//!   generation. Other readers see the old text until the next piece of generation 2. The old text never becomes an
//!   event, because the store has a fence of its own for saves (invariant 5, paid once).

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_proto::{LogId, SealedStep};
use lru::LruCache;

use crate::api::{Item, TextKey};

/// The known state of one agent execution.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// The newest generation; 0 when this process has seen no generation.
    pub generation: u32,
    /// The step of the newest generation.
    step: u32,
    /// The last sealed step.
    pub sealed: Option<u32>,
}

/// A log and an agent execution of the log.
type OfLog = (LogId, String);

/// Marks by log and agent execution. The most recently changed marks are kept.
#[derive(Debug)]
pub(super) struct Known(Mutex<LruCache<OfLog, Mark>>);

impl Known {
    pub(super) fn new(most: usize) -> Self {
        let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
        Self(Mutex::new(LruCache::new(most)))
    }

    pub(super) fn mark(&self, log: &LogId, agent_execution_id: &str) -> Mark {
        let key = (log.clone(), agent_execution_id.to_owned());
        self.lock().peek(&key).copied().unwrap_or_default()
    }

    /// Records the generation of a text, as given by the store.
    pub(super) fn note_text(&self, log: &LogId, key: &TextKey, generation: u32) {
        self.change(log, &key.agent_execution_id, |mark| {
            if generation > mark.generation {
                (mark.generation, mark.step) = (generation, key.step);
            }
        });
    }

    /// Records the seal of a step's text.
    pub(super) fn note_seal(&self, log: &LogId, sealed: &SealedStep) {
        self.change(log, &sealed.agent_execution_id, |mark| {
            mark.sealed = mark.sealed.max(Some(sealed.step));
        });
    }

    /// Records the content of an item. Returns false when a newer generation of the item's step is known.
    pub(super) fn admit(&self, log: &LogId, item: &Item) -> bool {
        match item {
            Item::Start(text) => self.admit_text(log, &text.key, text.generation),
            Item::Delta(piece) => self.admit_text(log, &piece.key, piece.generation),
            Item::Notice(_) => true,
            Item::Announced(news) => {
                for sealed in &news.sealed {
                    self.note_seal(log, sealed);
                }
                true
            }
        }
    }

    /// Records the generation of a text. Returns false when a newer generation of its step is known.
    pub(super) fn admit_text(&self, log: &LogId, key: &TextKey, generation: u32) -> bool {
        self.note_text(log, key, generation);
        let mark = self.mark(log, &key.agent_execution_id);
        generation >= mark.generation || key.step != mark.step
    }

    fn change(&self, log: &LogId, agent_execution_id: &str, change: impl FnOnce(&mut Mark)) {
        let key = (log.clone(), agent_execution_id.to_owned());
        change(self.lock().get_or_insert_mut(key, Mark::default));
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<OfLog, Mark>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Part;

    fn key(agent_execution: &str, step: u32) -> TextKey {
        TextKey {
            agent_execution_id: agent_execution.to_owned(),
            step,
            part: Part::Text,
        }
    }

    #[test]
    fn older_generations_of_a_step_are_not_admitted() {
        let known = Known::new(10);
        assert!(known.admit_text(&"c".into(), &key("run", 1), 1));
        assert!(known.admit_text(&"c".into(), &key("run", 1), 2));
        assert!(!known.admit_text(&"c".into(), &key("run", 1), 1));
        assert!(
            known.admit_text(&"c".into(), &key("run", 0), 1),
            "the step before may be open still"
        );
        assert!(known.admit_text(&"other".into(), &key("run", 1), 1));
    }

    #[test]
    fn memory_is_bounded_and_what_is_in_use_stays() {
        let known = Known::new(10);
        for number in 0..100 {
            known.note_text(&"c".into(), &key("used", 0), 7);
            let sealed = SealedStep {
                agent_execution_id: format!("run_{number}"),
                step: number,
            };
            known.note_seal(&"c".into(), &sealed);
        }
        assert_eq!(known.lock().len(), 10);
        assert_eq!(known.mark(&"c".into(), "used").generation, 7);
        assert_eq!(known.mark(&"c".into(), "run_99").sealed, Some(99));
        assert_eq!(known.mark(&"c".into(), "run_0").sealed, None);
    }
}
