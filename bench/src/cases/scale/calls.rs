//! The model of the case, and the number of calls of each turn.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use everturn_tests::model::{Reply, Request};

/// Time between two words.
const WORD: Duration = Duration::from_secs(1);

/// Words of a repeated call. The repeated call need not be long, because the measurement is over.
const WORDS_AGAIN: u32 = 5;

/// Returns the message of a turn.
pub(super) fn message(turn: u32) -> String {
    format!("Speak for turn {turn}.")
}

/// The calls of all turns. Clones share the calls.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    by_message: Arc<Mutex<HashMap<String, u32>>>,
    begun: Arc<OnceLock<Instant>>,
    ramp: Duration,
    speaking: Duration,
}

impl Calls {
    /// Makes the calls. Every first call speaks until `speaking` after the ramp.
    pub(super) fn new(ramp: Duration, speaking: Duration) -> Self {
        Self {
            by_message: Arc::default(),
            begun: Arc::default(),
            ramp,
            speaking,
        }
    }

    /// Begins the ramp.
    pub(super) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// Counts a call, and returns the reply.
    pub(super) fn reply(&self, request: &Request) -> Reply {
        let number = {
            let mut calls = self.lock();
            let number = calls.entry(request.last("user")).or_default();
            *number += 1;
            *number
        };
        let over = if number > 1 {
            WORD * WORDS_AGAIN
        } else {
            let begun = self.begun.get_or_init(Instant::now);
            self.speaking + self.ramp.saturating_sub(begun.elapsed())
        };
        let words = over.as_secs().max(1);
        let text = (0..words).map(|number| format!("word{number} ")).collect();
        Reply::spread(text, over)
    }

    /// Returns the number of calls of a turn.
    pub(super) fn of(&self, turn: u32) -> u32 {
        self.lock().get(&message(turn)).copied().unwrap_or_default()
    }

    /// Returns the number of turns with an unexpected call. Each of the first `terminated` turns may have two calls.
    pub(super) fn paid_twice(&self, terminated: u32) -> usize {
        let calls = self.lock();
        let more_than = |limit: u32| calls.values().filter(|calls| **calls > limit).count();
        let twice = (0..terminated).filter(|turn| calls.get(&message(*turn)) == Some(&2));
        more_than(1).saturating_sub(twice.count())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.by_message
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
