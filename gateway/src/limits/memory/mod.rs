//! The memory of tenants in a gateway: frames, pages, bodies of requests and answers. A tenant with memory has an account.
//!
//! A tenant is over its share above the limit of a tenant. When the tenants together are above the limit of the gateway,
//! a tenant is over its share above an equal part of the limit. A tenant over its share waits, and other tenants do not.
//! Counting takes no lock, because the gateway counts every frame.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, PoisonError, Weak, atomic::Ordering::Relaxed},
    time::Duration,
};

use axum::body::Bytes;
use tokio::sync::Notify;

use crate::{
    config::GatewayConfig,
    sync::{AtomicUsize, Mutex, MutexGuard, timeout},
};

/// The pause after which a waiting tenant looks again, because memory that another tenant gives back may enlarge the share.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The memory of the tenants together.
#[derive(Debug)]
pub(crate) struct Memory {
    most: usize,
    most_of_tenant: usize,
    all: AtomicUsize,
    /// The number of tenants with memory.
    holders: AtomicUsize,
    accounts: Mutex<HashMap<Box<str>, Weak<Account>>>,
}

/// The memory of one tenant.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    tenant_id: Box<str>,
    held: AtomicUsize,
    waiting: AtomicUsize,
    /// Notified when the tenant gives memory back.
    freed: Notify,
}

/// Counted bytes. A drop gives the bytes back.
#[derive(Debug)]
pub(crate) struct Held {
    account: Arc<Account>,
    bytes: usize,
}

impl Memory {
    pub(crate) fn new(config: &GatewayConfig) -> Arc<Self> {
        let most = |limit: Option<NonZeroUsize>| limit.map_or(usize::MAX, NonZeroUsize::get);
        Arc::new(Self {
            most: most(config.memory_bytes),
            most_of_tenant: most(config.tenant.memory_bytes),
            all: AtomicUsize::new(0),
            holders: AtomicUsize::new(0),
            accounts: Mutex::default(),
        })
    }

    /// Returns the account of a tenant. The account is removed with its last clone.
    pub(crate) fn account(self: &Arc<Self>, tenant_id: &str) -> Arc<Account> {
        let mut accounts = self.lock();
        if let Some(account) = accounts.get(tenant_id).and_then(Weak::upgrade) {
            return account;
        }
        let account = Arc::new(Account {
            memory: Arc::clone(self),
            tenant_id: tenant_id.into(),
            held: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        });
        accounts.insert(tenant_id.into(), Arc::downgrade(&account));
        account
    }

    /// Returns the bytes of the tenants together.
    pub(crate) fn held(&self) -> usize {
        self.all.load(Relaxed)
    }

    /// Returns the share of a tenant while the tenants together are above the gateway's limit.
    fn share(&self) -> usize {
        self.most / self.holders.load(Relaxed).max(1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Counts bytes that are in memory already.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.add(bytes);
        Held {
            account: Arc::clone(self),
            bytes,
        }
    }

    /// Counts bytes until the last reference to a part of the bytes is dropped.
    pub(crate) fn counted(self: &Arc<Self>, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let held = self.hold(bytes.as_ref().len());
        Bytes::from_owner(Counted { bytes, _held: held })
    }

    /// Takes memory for bytes to come, unless the tenant would be over its share. A tenant without memory gets any amount.
    pub(crate) fn try_room(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let before = self.add(bytes);
        if before > 0 && self.is_over() {
            // Without a notification: the memory was not free before, and a waiting caller would wake itself again and
            // again.
            self.subtract(bytes);
            return None;
        }
        Some(Held {
            account: Arc::clone(self),
            bytes,
        })
    }

    /// Waits for memory. Cancel safe.
    pub(crate) async fn room(self: &Arc<Self>, bytes: usize) -> Held {
        if let Some(room) = self.try_room(bytes) {
            return room;
        }
        let _waiting = Waiting::new(self);
        loop {
            // The first try here is for memory that came back before the caller counted as waiting.
            if let Some(room) = self.try_room(bytes) {
                // The next waiting caller may get memory, too.
                self.freed.notify_one();
                return room;
            }
            // Memory of other tenants notifies only their accounts, so the time-out covers that memory.
            let _looks_again = timeout(LOOK_EVERY, self.freed.notified()).await;
        }
    }

    /// Waits until the tenant is within its share. Cancel safe.
    pub(crate) async fn has_room(self: &Arc<Self>) {
        if self.is_over() {
            drop(self.room(0).await);
        }
    }

    /// True while the tenant is over its share.
    pub(crate) fn is_over(&self) -> bool {
        let (held, memory) = (self.held.load(Relaxed), &self.memory);
        held > memory.most_of_tenant || (memory.held() > memory.most && held > memory.share())
    }

    /// Adds bytes, and returns the tenant's bytes before.
    fn add(&self, bytes: usize) -> usize {
        self.memory.all.fetch_add(bytes, Relaxed);
        let before = self.held.fetch_add(bytes, Relaxed);
        if before == 0 && bytes > 0 {
            self.memory.holders.fetch_add(1, Relaxed);
        }
        before
    }

    fn subtract(&self, bytes: usize) {
        if self.held.fetch_sub(bytes, Relaxed) == bytes && bytes > 0 {
            self.memory.holders.fetch_sub(1, Relaxed);
        }
        self.memory.all.fetch_sub(bytes, Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.subtract(bytes);
        if self.waiting.load(Relaxed) > 0 && bytes > 0 {
            self.freed.notify_one();
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut accounts = self.memory.lock();
        // The map may have a newer account of the tenant.
        if accounts
            .get(&self.tenant_id)
            .is_some_and(|account| account.strong_count() == 0)
        {
            accounts.remove(&self.tenant_id);
        }
    }
}

impl Held {
    /// Changes the number of counted bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.account.add(bytes);
        self.account.give_back(self.bytes);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

/// Bytes with their count.
struct Counted<T> {
    bytes: T,
    _held: Held,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// A caller that waits for memory.
struct Waiting<'a>(&'a Account);

impl<'a> Waiting<'a> {
    fn new(account: &'a Account) -> Self {
        account.waiting.fetch_add(1, Relaxed);
        Self(account)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
