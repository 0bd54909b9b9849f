//! What providers have counted last. It is kept in memory alone: after a restart the next call measures anew.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;

use super::window::BytesPerToken;

/// The most agent executions whose last counts are kept: more than a worker runs at a time. Each takes some 100 bytes.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// How many bytes a token has, by agent execution.
#[derive(Debug)]
pub struct Measures {
    known: Mutex<LruCache<String, BytesPerToken>>,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            known: Mutex::new(LruCache::new(MAX_KNOWN)),
        }
    }
}

impl Measures {
    /// What was counted last of this agent execution, or a guess.
    pub(super) fn of(&self, agent_execution_id: &str) -> BytesPerToken {
        self.lock()
            .get(agent_execution_id)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn note(&self, agent_execution_id: &str, measured: BytesPerToken) {
        self.lock().put(agent_execution_id.to_owned(), measured);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, BytesPerToken>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
