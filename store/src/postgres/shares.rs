//! How many connections of the pool the calls of one conversation may hold at once.
//!
//! A call that waits for a row holds its connection meanwhile. Without a limit, the parallel tools of one conversation
//! whose lock somebody holds would take every connection, and the calls of all other conversations would wait for them.
//! With it, they wait here, in memory. A call takes its share before it takes a connection, and takes no second share, so
//! no two calls wait for each other.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{api::Result, error::StoreError};

/// Hands out the shares of all conversations. Clones hand out the same ones.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    most: usize,
    wait: Duration,
    /// The conversations whose calls hold a share or wait for one, and no others.
    conversations: Arc<Mutex<HashMap<String, Calls>>>,
}

/// The calls of one conversation.
#[derive(Debug)]
struct Calls {
    permits: Arc<Semaphore>,
    /// How many hold a share or wait for one.
    count: usize,
}

/// The share of a call, which has it until it drops this.
#[derive(Debug)]
pub(super) struct Share<'a> {
    _permit: OwnedSemaphorePermit,
    _place: Place<'a>,
}

/// Counts a call among those of its conversation, until it is dropped.
#[derive(Debug)]
struct Place<'a> {
    shares: &'a Shares,
    key: &'a str,
}

impl Shares {
    /// Lets at most `most` calls of a conversation hold a connection, while others wait for up to `wait`.
    pub(super) fn new(most: usize, wait: Duration) -> Self {
        Self {
            most,
            wait,
            conversations: Arc::default(),
        }
    }

    /// Waits for a share of the conversation that `key` stands for. Calls get theirs in the order in which they ask.
    pub(super) async fn take<'a>(&'a self, key: &'a str) -> Result<Share<'a>> {
        let (permits, place) = self.enter(key);
        let permit = tokio::time::timeout(self.wait, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let wait = self.wait;
            return Err(StoreError::Unavailable(
                format!("other calls of the conversation were busy for {wait:?}").into(),
            ));
        };
        Ok(Share {
            _permit: permit,
            _place: place,
        })
    }

    fn enter<'a>(&'a self, key: &'a str) -> (Arc<Semaphore>, Place<'a>) {
        let mut conversations = self.lock();
        let calls = conversations
            .entry(key.to_owned())
            .or_insert_with(|| Calls {
                permits: Arc::new(Semaphore::new(self.most)),
                count: 0,
            });
        calls.count += 1;
        let place = Place { shares: self, key };
        (Arc::clone(&calls.permits), place)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Calls>> {
        self.conversations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
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
