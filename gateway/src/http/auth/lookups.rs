//! Unknown keys. The gateway remembers an unknown key for some seconds, so that a repeated key costs no query.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lru::LruCache;
use tokio::time::Instant;

/// The most remembered ids of unknown keys: some 100 bytes each.
const MAX_UNKNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// This gateway's look-ups without a found key.
pub(super) struct UnknownKeys {
    ttl: Duration,
    ids: Mutex<LruCache<String, Instant>>,
}

impl UnknownKeys {
    /// `ttl` is how long the gateway remembers an unknown key.
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            ids: Mutex::new(LruCache::new(MAX_UNKNOWN)),
        }
    }

    /// Returns true when the store reported the key as unknown within `ttl`.
    pub(super) fn remember(&self, id: &str) -> bool {
        let found = self.lock().get(id).map(Instant::elapsed);
        found.is_some_and(|age| age < self.ttl)
    }

    /// Notes that the store has no key with the id.
    pub(super) fn note(&self, id: &str) {
        self.lock().put(id.to_owned(), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, Instant>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_keys_are_remembered_and_do_not_pile_up() {
        let unknown = UnknownKeys::new(Duration::from_mins(1));
        for number in 0..20_000_u32 {
            unknown.note(&format!("k{number}"));
        }
        assert_eq!(unknown.lock().len(), MAX_UNKNOWN.get());
        assert!(unknown.remember("k19999") && !unknown.remember("other"));
    }
}
