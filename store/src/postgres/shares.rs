//! Limits how many connections of the pool the calls of one conversation occupy at once.
//!
//! A call that waits for a row occupies its connection. Without a limit, the parallel tools of one locked conversation
//! could take every connection, and block the calls of other conversations. With the limit, the tools' calls wait here,
//! in memory. A call takes its share before a connection, and never takes a second share. Therefore calls never
//! deadlock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{api::Result, error::StoreError};

/// Hands out the shares of every conversation. Clones hand out from a common supply.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    most: usize,
    wait: Duration,
    /// The conversations with calls that hold a share or wait for a share. Other conversations have no entry.
    conversations: Arc<Mutex<HashMap<String, Calls>>>,
}

/// The calls of one conversation.
#[derive(Debug)]
struct Calls {
    permits: Arc<Semaphore>,
    /// Number of calls that hold a share or wait for a share.
    count: usize,
}

/// The share of a call. Dropping it frees the share.
#[derive(Debug)]
pub(super) struct Share<'a> {
    _permit: OwnedSemaphorePermit,
    _entry: Entry<'a>,
}

/// Counts a call of its conversation until dropped.
#[derive(Debug)]
struct Entry<'a> {
    shares: &'a Shares,
    key: &'a str,
}

impl Shares {
    /// Lets at most `most` calls per conversation occupy a connection. Other calls wait for up to `wait`.
    pub(super) fn new(most: usize, wait: Duration) -> Self {
        Self {
            most,
            wait,
            conversations: Arc::default(),
        }
    }

    /// Waits for a share of `key`'s conversation. Calls get shares in the order of their requests.
    pub(super) async fn take<'a>(&'a self, key: &'a str) -> Result<Share<'a>> {
        let (permits, entry) = self.enter(key);
        let permit = tokio::time::timeout(self.wait, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let wait = self.wait;
            return Err(StoreError::Unavailable(
                format!("other calls of the conversation were busy for {wait:?}").into(),
            ));
        };
        Ok(Share {
            _permit: permit,
            _entry: entry,
        })
    }

    fn enter<'a>(&'a self, key: &'a str) -> (Arc<Semaphore>, Entry<'a>) {
        let mut conversations = self.lock();
        let calls = conversations
            .entry(key.to_owned())
            .or_insert_with(|| Calls {
                permits: Arc::new(Semaphore::new(self.most)),
                count: 0,
            });
        calls.count += 1;
        let entry = Entry { shares: self, key };
        (Arc::clone(&calls.permits), entry)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Calls>> {
        self.conversations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut conversations = self.shares.lock();
        if let Some(calls) = conversations.get_mut(self.key) {
            calls.count -= 1;
            if calls.count == 0 {
                conversations.remove(self.key);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_waits_for_its_own_conversation_only_and_leaves_nothing_behind() {
        let shares = Shares::new(1, Duration::from_millis(50));
        let held = shares.take("a").await.unwrap();
        shares.take("b").await.unwrap();
        assert!(shares.take("a").await.unwrap_err().is_retryable());
        // This call is given up by its caller while it waits.
        tokio::select! {
            biased;
            _ = shares.take("a") => panic!("somebody else has it"),
            () = async {} => {}
        }
        assert_eq!(shares.lock().len(), 1, "only `a` is still held");
        let (next, ()) = tokio::join!(shares.take("a"), async { drop(held) });
        drop(next.unwrap());
        assert!(shares.lock().is_empty());
    }
}
