//! Entries about reads of admins. A program that watches the trail or the sums reads every few seconds, and each read of
//! the trail would be another entry to read. An entry therefore stands for equal reads of the caller in ten minutes.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_store::NewAuditEntry;
use lru::LruCache;
use tokio::time::Instant;

/// How long an entry stands for equal reads.
const WINDOW: Duration = Duration::from_mins(10);
/// The most remembered reads: some 200 bytes each. A forgotten read gets a further entry.
const MAX_READS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The reads of the last minutes that have an entry.
#[derive(Clone)]
pub(super) struct Reads(Arc<Mutex<LruCache<Read, Instant>>>);

/// The actor, the action, and the target.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Read([String; 4]);

impl Reads {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_READS))))
    }

    /// Returns true when a recent entry stands for the read of the entry.
    pub(super) fn have(&self, entry: &NewAuditEntry) -> bool {
        let noted = self.lock().get(&Read::of(entry)).map(Instant::elapsed);
        noted.is_some_and(|age| age < WINDOW)
    }

    /// Notes that the trail has the entry.
    pub(super) fn note(&self, entry: &NewAuditEntry) {
        self.lock().put(Read::of(entry), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Read, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read {
    fn of(entry: &NewAuditEntry) -> Self {
        Self([
            entry.actor.kind.as_str().to_owned(),
            entry.actor.id.clone().unwrap_or_default(),
            entry.action.as_str().to_owned(),
            entry.target.id.clone(),
        ])
    }
}
