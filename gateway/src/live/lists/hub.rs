//! One tail per list for any number of readers. A list is the view of one caller: an owner's conversations, or a
//! tenant's conversations.
//!
//! A tail reads its list again after a change by the gateway itself, and after the query for the versions of all lists
//! has found another version. The store changes the version with every change that a list shows, so an idle list costs
//! only its row in this query. The tail ends with its last reader.

use std::{
    collections::HashMap,
    slice,
    sync::{Arc, PoisonError},
    time::Duration,
};

use everturn_store::{Access, Conversations, ListQuery, ListVersion, StoreError};
use tokio::sync::{Notify, watch};

use super::snapshot::ListSnapshot;
use crate::sync::{Mutex, MutexGuard, sleep, spawn};

/// The number of conversations in a list snapshot: more than a page of a client, and some 50 KB.
const LISTED: u32 = 100;

/// The shortest time between two reads of a list. The next read includes the changes in between.
const PAUSE: Duration = Duration::from_millis(200);

/// The most lists of one query: some 100 KB of names.
const MAX_LISTS: usize = 1000;

/// Holds the tails of a gateway's lists. Clones share the tails.
#[derive(Clone)]
pub struct ListHub {
    shared: Arc<SharedLists>,
}

struct SharedLists {
    conversations: Arc<dyn Conversations>,
    /// The time between two queries for all lists.
    interval: Duration,
    tails: Mutex<Tails>,
}

#[derive(Default)]
struct Tails {
    /// The tails by caller. The map has no more entries than there are readers.
    by_caller: HashMap<Access, Arc<ListTail>>,
    is_looking: bool,
}

/// A list with at least one reader.
struct ListTail {
    access: Access,
    /// The snapshot of the last read; `None` before the first read.
    newest: watch::Sender<Option<Arc<ListSnapshot>>>,
    /// Notified when the list may have changed.
    wake: Notify,
}

/// One reader of a list. Dropping the last reader ends the tail.
pub struct ListReader {
    newest: watch::Receiver<Option<Arc<ListSnapshot>>>,
    /// The last snapshot shown to the reader.
    shown: Option<Arc<ListSnapshot>>,
}

impl ListHub {
    /// Makes a hub without tails. Once per `interval`, the hub asks the store for the versions of its lists.
    pub fn new(conversations: Arc<dyn Conversations>, interval: Duration) -> Self {
        let shared = SharedLists {
            conversations,
            interval: interval.max(Duration::from_millis(1)),
            tails: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Makes a reader of the caller's list. Must be called within a tokio runtime.
    pub fn open(&self, access: &Access) -> ListReader {
        let mut tails = self.shared.lock();
        if !tails.is_looking {
            tails.is_looking = true;
            spawn(Arc::clone(&self.shared).look_for_changes());
        }
        let tail = tails.by_caller.entry(access.clone()).or_insert_with(|| {
            let tail = Arc::new(ListTail {
                access: access.clone(),
                newest: watch::Sender::new(None),
                wake: Notify::new(),
            });
            let (shared, run) = (Arc::clone(&self.shared), Arc::clone(&tail));
            spawn(TailTask { shared, tail: run }.run());
            tail
        });
        // The reader is counted under the lock, so the tail cannot end before.
        let mut newest = tail.newest.subscribe();
        newest.mark_changed();
        ListReader {
            newest,
            shown: None,
        }
    }

    /// Makes the tails with conversations of the caller read again, because the gateway has changed a conversation of
    /// the caller.
    pub fn changed(&self, access: &Access) {
        let tails = self.shared.lock();
        for caller in [access, &Access::tenant(&access.tenant_id)] {
            if let Some(tail) = tails.by_caller.get(caller) {
                tail.wake.notify_one();
            }
        }
    }

    /// Returns the number of lists with readers.
    pub fn tails(&self) -> usize {
        self.shared.lock().by_caller.len()
    }
}

impl ListReader {
    /// Waits until the list has changed, and keeps the change for [`ListReader::next`]; `None` at the end. Cancel safe.
    pub(super) async fn changed(&mut self) -> Option<()> {
        self.newest.changed().await.ok()?;
        self.newest.mark_changed();
        Some(())
    }

    /// Waits for the next frames; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            self.newest.changed().await.ok()?;
            let newest = self.newest.borrow_and_update().clone();
            let Some(newest) = newest else { continue };
            let frames = newest.frames_since(self.shown.as_deref());
            self.shown = Some(newest);
            if !frames.is_empty() {
                return Some(frames);
            }
        }
    }
}

impl SharedLists {
    /// Asks the store for the version of every list, and makes the tails of changed lists read again. The loop ends when
    /// no list has a reader.
    async fn look_for_changes(self: Arc<Self>) {
        loop {
            sleep(self.interval).await;
            let Some(tails) = self.tails_to_look_for() else {
                return;
            };
            for chunk in tails.chunks(MAX_LISTS) {
                let callers: Vec<_> = chunk.iter().map(|tail| tail.access.clone()).collect();
                match self.conversations.list_versions(&callers).await {
                    Ok(versions) => {
                        let looked_at = chunk.iter().zip(versions);
                        let changed =
                            looked_at.filter(|(tail, version)| tail.has_other_than(*version));
                        changed.for_each(|(tail, _)| tail.wake.notify_one());
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the query for changed lists failed; the next query follows");
                    }
                }
            }
        }
    }

    fn tails_to_look_for(&self) -> Option<Vec<Arc<ListTail>>> {
        let mut tails = self.lock();
        tails.is_looking = !tails.by_caller.is_empty();
        let is_looking = tails.is_looking;
        is_looking.then(|| tails.by_caller.values().cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Tails> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListTail {
    /// Returns true when the last snapshot has another version.
    fn has_other_than(&self, version: ListVersion) -> bool {
        let newest = self.newest.borrow();
        newest
            .as_ref()
            .is_some_and(|list| list.version() != version)
    }
}

/// Runs one tail. At the end of the task, also after a panic, the readers learn of the end.
struct TailTask {
    shared: Arc<SharedLists>,
    tail: Arc<ListTail>,
}

impl TailTask {
    async fn run(self) {
        while !self.is_unread() {
            let read = self.read().await;
            let has_failed = read.is_err();
            if let Err(error) = read {
                tracing::debug!(%error, "a list could not be read; the gateway tries again");
            }
            sleep(PAUSE).await;
            tokio::select! {
                () = self.tail.wake.notified() => {}
                () = self.tail.newest.closed() => {}
                () = sleep(self.shared.interval), if has_failed => {}
            }
        }
    }

    async fn read(&self) -> Result<(), StoreError> {
        let query = ListQuery {
            limit: LISTED,
            ..ListQuery::default()
        };
        let (store, access) = (&self.shared.conversations, &self.tail.access);
        // The version comes first. A change between the two reads is in the list, and gives the list another version.
        let versions = store.list_versions(slice::from_ref(access)).await?;
        let version = versions.first().copied().unwrap_or_default();
        let page = store.list_conversations(access, &query).await?;
        let earlier = self.tail.newest.borrow().clone();
        let list = ListSnapshot::new(page, version, earlier.as_deref());
        self.tail.newest.send_replace(Some(Arc::new(list)));
        Ok(())
    }

    /// Returns true when the list has no reader. An unread tail leaves the hub.
    fn is_unread(&self) -> bool {
        let mut tails = self.shared.lock();
        let is_unread = self.tail.newest.receiver_count() == 0;
        if is_unread {
            self.remove_from(&mut tails);
        }
        is_unread
    }

    fn remove_from(&self, tails: &mut Tails) {
        let held = tails.by_caller.get(&self.tail.access);
        if held.is_some_and(|held| Arc::ptr_eq(held, &self.tail)) {
            tails.by_caller.remove(&self.tail.access);
        }
    }
}

impl Drop for TailTask {
    fn drop(&mut self) {
        // After a panic, the hub must drop the tail, because only then do the readers learn of the end.
        self.remove_from(&mut self.shared.lock());
    }
}
