//! Keys and sessions of the store, kept in memory for some seconds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::{ApiKey, KeyKind, Keys, StoreError};
use tokio::time::Instant;

use super::secret::Secret;
use crate::config::AuthConfig;

/// The shortest time between two notes in the store that a key was used.
const USE_NOTED_EVERY: TimeDelta = TimeDelta::minutes(1);

/// The store's keys. Each key in use costs one query in each `ttl`, and a revoked key still works for at most `ttl`.
///
/// Keys that do not exist are not remembered: whoever tries made-up ids would fill the memory.
pub(crate) struct KeyRing {
    store: Arc<dyn Keys>,
    ttl: Duration,
    max_cached: usize,
    cache: Mutex<HashMap<String, Cached>>,
}

struct Cached {
    key: Arc<ApiKey>,
    read_at: Instant,
    used_at: Option<DateTime<Utc>>,
}

/// Why a key or session is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// No such id, or another secret: the same for both.
    Unknown,
    Revoked,
    Expired,
}

impl KeyRing {
    pub(crate) fn new(store: Arc<dyn Keys>, config: &AuthConfig) -> Self {
        Self {
            store,
            ttl: config.key_cache,
            max_cached: config.max_cached_keys,
            cache: Mutex::default(),
        }
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &dyn Keys {
        &*self.store
    }

    /// Returns the key whose secret this is, when it is valid.
    pub(crate) async fn verify(
        &self,
        secret: &Secret,
    ) -> Result<Result<Arc<ApiKey>, Invalid>, StoreError> {
        let found = self.find(secret.id()).await?;
        let fits =
            |key: &Arc<ApiKey>| key.kind == secret.kind() && secret.has_hash(&key.secret_hash);
        let Some(key) = found.filter(fits) else {
            return Ok(Err(Invalid::Unknown));
        };
        if let Some(invalid) = invalid(&key) {
            return Ok(Err(invalid));
        }
        if key.kind == KeyKind::Key {
            self.note_use(&key);
        }
        Ok(Ok(key))
    }

    /// True when the key with this id is valid.
    pub(crate) async fn holds(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self
            .find(id)
            .await?
            .is_some_and(|key| invalid(&key).is_none()))
    }

    /// Forgets the key, so that it is read from the store the next time.
    pub(crate) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    async fn find(&self, id: &str) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let cached = self
            .lock()
            .get(id)
            .filter(|cached| cached.read_at.elapsed() < self.ttl)
            .map(|cached| cached.key.clone());
        if cached.is_some() {
            return Ok(cached);
        }
        let read_at = Instant::now();
        let Some(key) = self.store.find_key(id).await?.map(Arc::new) else {
            self.forget(id);
            return Ok(None);
        };
        let mut cache = self.lock();
        if cache.len() >= self.max_cached && !cache.contains_key(id) {
            cache.retain(|_, cached| cached.read_at.elapsed() < self.ttl);
            if cache.len() >= self.max_cached {
                cache.clear();
            }
        }
        cache.insert(
            id.to_owned(),
            Cached {
                key: key.clone(),
                read_at,
                used_at: key.last_used_at,
            },
        );
        Ok(Some(key))
    }

    /// Notes in the store that the key was used, unless that was done lately. No request waits for it.
    fn note_use(&self, key: &ApiKey) {
        let now = Utc::now();
        let before = now - USE_NOTED_EVERY;
        match self.lock().get_mut(&key.id) {
            Some(cached) if cached.used_at.is_none_or(|at| at < before) => {
                cached.used_at = Some(now);
            }
            _ => return,
        }
        let (store, id) = (Arc::clone(&self.store), key.id.clone());
        tokio::spawn(async move {
            if let Err(error) = store.touch_key(&id, before).await {
                tracing::debug!(%error, key = id, "the use of a key was not written down");
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(key: &ApiKey) -> Option<Invalid> {
    match key.revoked_at {
        Some(_) => Some(Invalid::Revoked),
        None if key.is_valid_at(Utc::now()) => None,
        None => Some(Invalid::Expired),
    }
}
