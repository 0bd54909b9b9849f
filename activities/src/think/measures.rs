//! The providers' last token counts. They are in memory alone: after a restart the next call counts anew.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_models::BytesPerToken;
use lru::LruCache;

/// The most agent executions with a known count: more than a worker runs in parallel. Each entry takes about 100 bytes.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The bytes per token, by agent execution.
#[derive(Debug)]
pub(super) struct Measures {
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
    /// Returns the last ratio of this agent execution, or a guess.
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
