//! The world that all actors share: the engine, the store, the schedule, and the facts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_store::sqlite::SqliteStore;

use crate::{engine::Engine, facts::Facts, people::People, schedule::Schedule, seed::Choices};

/// A call to the engine whose answer was lost, and whose effect comes late.
type LateCall = Box<dyn FnOnce(&mut Engine) + Send>;

/// The world of a simulation. Clones share the world.
#[derive(Clone)]
pub(crate) struct World {
    /// The schedule of the actors.
    pub(crate) schedule: Schedule,
    /// The store of the product.
    pub(crate) store: SqliteStore,
    engine: Arc<Mutex<Engine>>,
    facts: Arc<Mutex<Facts>>,
    people: Arc<Mutex<People>>,
    choices: Arc<Mutex<Choices>>,
    late: Arc<Mutex<Vec<LateCall>>>,
    is_calm: Arc<Mutex<bool>>,
}

impl World {
    /// Makes an empty world.
    pub(crate) fn new(store: SqliteStore, choices: Choices) -> Self {
        Self {
            schedule: Schedule::default(),
            store,
            engine: Arc::default(),
            facts: Arc::default(),
            people: Arc::default(),
            choices: Arc::new(Mutex::new(choices)),
            late: Arc::default(),
            is_calm: Arc::default(),
        }
    }

    /// The model of Temporal.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }

    /// What has really happened.
    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        lock(&self.facts)
    }

    /// What people were asked and told.
    pub(crate) fn people(&self) -> MutexGuard<'_, People> {
        lock(&self.people)
    }

    /// The choices of the seed.
    pub(crate) fn choices(&self) -> MutexGuard<'_, Choices> {
        lock(&self.choices)
    }

    /// Keeps a call to the engine for later.
    pub(crate) fn delay(&self, call: LateCall) {
        lock(&self.late).push(call);
    }

    /// Returns the number of late calls.
    pub(crate) fn late_calls(&self) -> usize {
        lock(&self.late).len()
    }

    /// A late call arrives at the engine.
    pub(crate) fn arrive(&self, index: usize) {
        let call = lock(&self.late).remove(index);
        call(&mut self.engine());
    }

    /// Ends the faults: from now on everything must come to its end.
    pub(crate) fn calm(&self) {
        *lock(&self.is_calm) = true;
    }

    /// Returns true after the end of the faults.
    pub(crate) fn is_calm(&self) -> bool {
        *lock(&self.is_calm)
    }

    /// Returns true when a fault happens here, `times` in 100 times.
    pub(crate) fn fault(&self, times: usize) -> bool {
        let chosen = self.choices().percent(times);
        chosen && !self.is_calm()
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
