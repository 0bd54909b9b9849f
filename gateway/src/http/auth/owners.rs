//! Owners of tokens, kept in memory for some seconds: an admin may have ended an owner's sign-ins, or refuse the owner.
//! A key or a session is read together with the state of its owner (`keys`).

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_store::{Access, OwnerRefusal, OwnerState, Owners, StoreError};
use lru::LruCache;
use tokio::time::Instant;

use super::caller::Caller;
use crate::config::AuthConfig;

/// The states of owners. Each owner with a token in use costs one query per `ttl`, and a change by another gateway takes
/// effect within `ttl`.
pub(super) struct OwnerRing {
    store: Arc<dyn Owners>,
    ttl: Duration,
    cache: Mutex<LruCache<Access, (OwnerState, Instant)>>,
}

impl OwnerRing {
    pub(super) fn new(store: Arc<dyn Owners>, config: &AuthConfig) -> Self {
        let max_cached = NonZeroUsize::new(config.max_cached_keys).unwrap_or(NonZeroUsize::MIN);
        Self {
            store,
            ttl: config.key_cache,
            cache: Mutex::new(LruCache::new(max_cached)),
        }
    }

    /// Returns why the token of the caller is refused.
    pub(super) async fn refusal(
        &self,
        caller: &Caller,
    ) -> Result<Option<OwnerRefusal>, StoreError> {
        let access = &caller.access;
        let Some(owner_id) = &access.owner_id else {
            return Ok(None);
        };
        let state = if let Some(state) = self.cached(access) {
            state
        } else {
            let read_at = Instant::now();
            let state = self.store.owner_state(&access.tenant_id, owner_id).await?;
            self.lock().put(access.clone(), (state, read_at));
            state
        };
        Ok(state.refusal(caller.scopes.reach(), caller.signed_in_at))
    }

    /// Forgets the state of an owner. The next request reads the state from the store.
    pub(super) fn forget(&self, access: &Access) {
        self.lock().pop(access);
    }

    fn cached(&self, access: &Access) -> Option<OwnerState> {
        let (state, read_at) = *self.lock().get(access)?;
        (read_at.elapsed() < self.ttl).then_some(state)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Access, (OwnerState, Instant)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
