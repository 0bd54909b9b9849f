//! The broadcasts of the running tails of a gateway, by log. A broadcast stays here while its tail runs.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use everturn_proto::LogId;

use super::{broadcast::Broadcast, end::ReaderEnd};
use crate::sync::{Mutex, MutexGuard};

/// The broadcasts of the running tails.
pub(super) struct Broadcasts {
    /// The time until a tail without readers ends.
    linger: Duration,
    /// The broadcasts by log id. The key is not the conversation id, because a conversation made anew with the id of a
    /// removed conversation has another log. The map has no more entries than current readers and readers that left
    /// within `linger`.
    by_log: Mutex<HashMap<LogId, Arc<Broadcast>>>,
}

impl Broadcasts {
    /// Makes a set without broadcasts.
    pub(super) fn new(linger: Duration) -> Arc<Self> {
        Arc::new(Self {
            linger,
            by_log: Mutex::default(),
        })
    }

    /// Counts a reader in, until [`Broadcast::leave`], and returns the broadcast of the log. Without a running tail,
    /// `start` starts a tail.
    pub(super) fn enter(
        &self,
        log_id: &LogId,
        start: impl FnOnce() -> Arc<Broadcast>,
    ) -> Arc<Broadcast> {
        let mut by_log = self.lock();
        let broadcast = match by_log.get(log_id) {
            Some(broadcast) if !broadcast.has_ended() => Arc::clone(broadcast),
            _ => {
                let broadcast = start();
                by_log.insert(log_id.clone(), Arc::clone(&broadcast));
                broadcast
            }
        };
        // The reader is counted under the lock, so the tail cannot end before.
        broadcast.enter();
        broadcast
    }

    /// Returns the broadcast of the log, while the tail runs.
    pub(super) fn get(&self, log_id: &LogId) -> Option<Arc<Broadcast>> {
        self.lock().get(log_id).map(Arc::clone)
    }

    /// Returns the number of running tails.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn remove(by_log: &mut HashMap<LogId, Arc<Broadcast>>, broadcast: &Arc<Broadcast>) {
        let log_id = &broadcast.log().id;
        if by_log
            .get(log_id)
            .is_some_and(|held| Arc::ptr_eq(held, broadcast))
        {
            by_log.remove(log_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Broadcast>>> {
        self.by_log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The broadcast of a running tail. A drop ends the broadcast, also after a panic of the tail.
pub(super) struct RunningTail {
    broadcasts: Arc<Broadcasts>,
    broadcast: Arc<Broadcast>,
}

impl RunningTail {
    /// Makes the guard of a tail that writes `broadcast`.
    pub(super) fn new(broadcasts: Arc<Broadcasts>, broadcast: Arc<Broadcast>) -> Self {
        Self {
            broadcasts,
            broadcast,
        }
    }

    /// Returns the broadcast.
    pub(super) fn broadcast(&self) -> &Broadcast {
        &self.broadcast
    }

    /// Returns true after the tail's end, or after the linger time without readers. The broadcast of a finished tail is
    /// removed.
    pub(super) fn is_done(&self) -> bool {
        let mut by_log = self.broadcasts.lock();
        let is_done = self.broadcast.is_over(self.broadcasts.linger);
        if is_done {
            Broadcasts::remove(&mut by_log, &self.broadcast);
        }
        is_done
    }

    /// Waits until the tail has had no reader for the linger time; waits forever while a reader is present. Cancel safe.
    pub(super) async fn lingered(&self) {
        self.broadcast.lingered(self.broadcasts.linger).await;
    }
}

impl Drop for RunningTail {
    fn drop(&mut self) {
        Broadcasts::remove(&mut self.broadcasts.lock(), &self.broadcast);
        // Only the first end counts. The end here is for a task that panicked or was dropped.
        self.broadcast.end(ReaderEnd::Unreadable);
    }
}
