//! Memory that is held for tenants: frames, pages, bodies of requests and answers. Each tenant that holds something has an
//! account.
//!
//! A tenant is over its share when it holds more than one may, or when all together hold more than they may and it holds
//! more than an equal part. Then it waits, and the others do not. To count takes no lock, because each frame is counted.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::body::Bytes;
use tokio::{sync::Notify, time::timeout};

use crate::config::GatewayConfig;

/// How often somebody who waits looks again, because what another tenant gives back may make the share larger.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What all tenants hold.
#[derive(Debug)]
pub(crate) struct Memory {
    most: usize,
    most_of_tenant: usize,
    all: AtomicUsize,
    /// The tenants that hold something.
    holders: AtomicUsize,
    accounts: Mutex<HashMap<Box<str>, Weak<Account>>>,
}

/// What one tenant holds.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    tenant_id: Box<str>,
    held: AtomicUsize,
    waiting: AtomicUsize,
    /// Notified when something is given back.
    freed: Notify,
}

/// Bytes that are held; dropping it gives them back.
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

    /// The account of a tenant. It is forgotten when nobody has it any more.
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

    /// The bytes that all tenants hold.
    pub(crate) fn held(&self) -> usize {
        self.all.load(Relaxed)
    }

    /// What each tenant may hold while all together hold too much.
    fn share(&self) -> usize {
        self.most / self.holders.load(Relaxed).max(1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Counts bytes that are held already.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.add(bytes);
        Held {
            account: Arc::clone(self),
            bytes,
        }
    }

    /// Counts these bytes for as long as somebody has a part of them.
    pub(crate) fn counted(self: &Arc<Self>, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let held = self.hold(bytes.as_ref().len());
        Bytes::from_owner(Counted { bytes, _held: held })
    }

    /// Takes memory for bytes to come, unless the tenant would be over its share. Whoever holds nothing gets any amount.
    pub(crate) fn try_room(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let before = self.add(bytes);
        if before > 0 && self.is_over() {
            // Nobody is told: this memory was not free before, and whoever waits would wake itself again and again.
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
            // Whoever gives nothing back for a while leaves it to the time to look again.
            let _looks_again = timeout(LOOK_EVERY, self.freed.notified()).await;
            if let Some(room) = self.try_room(bytes) {
                // There may be memory for the next one who waits.
                self.freed.notify_one();
                return room;
            }
        }
    }

    /// Waits until the tenant is not over its share. Cancel safe.
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

    /// Counts, and returns what the tenant held before.
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
        // The tenant may have another account by now.
        if accounts
            .get(&self.tenant_id)
            .is_some_and(|account| account.strong_count() == 0)
        {
            accounts.remove(&self.tenant_id);
        }
    }
}

impl Held {
    /// Corrects what is held.
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

/// Bytes that are counted while they are there.
struct Counted<T> {
    bytes: T,
    _held: Held,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Somebody who waits for memory.
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
