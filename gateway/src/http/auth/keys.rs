//! Keys and sessions of the store, kept in memory for some seconds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::{Access, ApiKey, KeyKind, Keys, OwnerRefusal, StoreError};
use tokio::time::Instant;

use super::{lookups::UnknownKeys, secret::Secret};
use crate::config::{AuthConfig, Scopes};

/// The shortest time between two updates of a key's last use in the store.
const USE_NOTED_EVERY: TimeDelta = TimeDelta::minutes(1);

/// The store's keys. Each key in use costs one query per `ttl`, and a revoked key keeps working for at most `ttl`.
pub(crate) struct KeyRing {
    store: Arc<dyn Keys>,
    ttl: Duration,
    max_cached: usize,
    cache: Mutex<HashMap<String, Cached>>,
    unknown: UnknownKeys,
}

struct Cached {
    key: Arc<ApiKey>,
    read_at: Instant,
    used_at: Option<DateTime<Utc>>,
}

/// The reason why a key or session is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// The id is unknown, or the secret is wrong. The refusal is identical in both cases.
    Unknown,
    Revoked(Arc<ApiKey>),
    Expired(Arc<ApiKey>),
    /// An admin refuses the owner of the key.
    OwnerRefused(Arc<ApiKey>),
}

impl KeyRing {
    pub(crate) fn new(store: Arc<dyn Keys>, config: &AuthConfig) -> Self {
        Self {
            store,
            ttl: config.key_cache,
            max_cached: config.max_cached_keys,
            cache: Mutex::default(),
            unknown: UnknownKeys::new(config.key_cache),
        }
    }

    /// Returns the store behind the cache.
    pub(crate) fn store(&self) -> &dyn Keys {
        &*self.store
    }

    /// Returns the secret's key, when the key is valid.
    pub(crate) async fn verify(
        &self,
        secret: &Secret,
    ) -> Result<Result<Arc<ApiKey>, Invalid>, StoreError> {
        let id = secret.id();
        let found = match self.cached(id) {
            Some(key) => Some(key),
            None if self.unknown.remember(id) => None,
            None => {
                let read = self.read(id).await?;
                if read.is_none() {
                    self.unknown.note(id);
                }
                read
            }
        };
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

    /// Returns true when the key with the id is valid.
    pub(crate) async fn holds(&self, id: &str) -> Result<bool, StoreError> {
        let key = match self.cached(id) {
            Some(key) => Some(key),
            None => self.read(id).await?,
        };
        Ok(key.is_some_and(|key| invalid(&key).is_none()))
    }

    /// Forgets the key. The next request reads the key from the store.
    pub(crate) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Forgets the keys and sessions of an owner.
    pub(crate) fn forget_owner(&self, access: &Access) {
        self.lock().retain(|_, cached| cached.key.access != *access);
    }

    /// Returns the key when its last read is younger than `ttl`.
    fn cached(&self, id: &str) -> Option<Arc<ApiKey>> {
        let cache = self.lock();
        let cached = cache.get(id)?;
        (cached.read_at.elapsed() < self.ttl).then(|| cached.key.clone())
    }

    /// Reads a key from the store.
    async fn read(&self, id: &str) -> Result<Option<Arc<ApiKey>>, StoreError> {
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

    /// Notes in the store that the key was used, at most once in [`USE_NOTED_EVERY`]. Requests do not wait for the
    /// write.
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
                tracing::debug!(%error, key = id, "the last use of a key was not stored");
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(key: &Arc<ApiKey>) -> Option<Invalid> {
    let reach = Scopes::parse(&key.scopes).reach();
    match (key.revoked_at, key.owner_refusal(reach)) {
        (None, Some(OwnerRefusal::Refused)) => Some(Invalid::OwnerRefused(Arc::clone(key))),
        (Some(_), _) | (None, Some(OwnerRefusal::Ended)) => Some(Invalid::Revoked(Arc::clone(key))),
        (None, None) if key.is_valid_at(Utc::now()) => None,
        (None, None) => Some(Invalid::Expired(Arc::clone(key))),
    }
}
