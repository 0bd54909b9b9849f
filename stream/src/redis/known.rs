//! What this process has seen of agent executions. It is still known here when Redis has lost everything.
//!
//! # What the fence holds (invariant 7, fenced deltas), and what not, after Redis has lost everything
//!
//! Redis keeps the newest generation and the last sealed step of each agent execution (its mark) for longer than
//! any text of it. When the mark is lost with everything else:
//!
//! - A piece that does not begin at 0 is never taken: its text is unknown, whatever its generation. It raises the
//!   mark all the same, so one piece of generation 2, even one that cannot be placed, refuses generation 1 again.
//! - A process restores with each piece what it knows itself: generation 1 is refused where generation 2 was
//!   published, announced or followed.
//! - A follower never gets a text of an older generation than its gateway has seen of the step, neither live nor
//!   in a snapshot, whatever Redis has taken.
//! - Not held here: generation 1, from a process that has seen no newer one, published again from offset 0 before
//!   the first piece of generation 2 since the loss. Redis takes it, and gives it to followers whose gateways have
//!   not seen generation 2. A Redis that came back with an older state does the same. A reader that has seen
//!   generation 2 is not shown it: its gateway has asked the store since the reader came, which knows the newest
//!   generation. Other readers are shown it until the next piece of generation 2. No event is made of it: the store
//!   fences what is saved by itself (invariant 5, paid once).

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_proto::{LogId, SealedStep};
use lru::LruCache;

use crate::api::{Item, TextKey};

/// What is known of one agent execution.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// Its newest generation; 0 when none was seen.
    pub generation: u32,
    /// The step that generation was for.
    step: u32,
    /// Its last sealed step.
    pub sealed: Option<u32>,
}

/// A log, and an agent execution of it.
type OfLog = (LogId, String);

/// Marks by log and agent execution. Those that were changed last stay.
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

    /// Notes a text's generation, which the store gave.
    pub(super) fn note_text(&self, log: &LogId, key: &TextKey, generation: u32) {
        self.change(log, &key.agent_execution_id, |mark| {
            if generation > mark.generation {
                (mark.generation, mark.step) = (generation, key.step);
            }
        });
    }

    /// Notes that a step's text is sealed.
    pub(super) fn note_seal(&self, log: &LogId, sealed: &SealedStep) {
        self.change(log, &sealed.agent_execution_id, |mark| {
            mark.sealed = mark.sealed.max(Some(sealed.step));
        });
    }

    /// Notes what an item says; false when its text is of an older generation than was seen of its step.
    pub(super) fn admit(&self, log: &LogId, item: &Item) -> bool {
        match item {
            Item::Start(text) => self.admit_text(log, &text.key, text.generation),
            Item::Delta(piece) => self.admit_text(log, &piece.key, piece.generation),
            Item::Announced(news) => {
                for sealed in &news.sealed {
                    self.note_seal(log, sealed);
                }
                true
            }
        }
    }

    /// Notes what is said of a text; false when a newer generation was seen of its step.
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
