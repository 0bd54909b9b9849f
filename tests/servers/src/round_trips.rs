//! Counts the round trips of PostgreSQL's clients behind a proxy.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::proxy::{Direction, Inspector, Verdict};

/// The message `Sync` alone, with which sqlx pings a connection that comes back to its pool.
const PING: &[u8] = b"S\0\0\0\x04";

/// The number of round trips of all connections of a proxy, that is, how often a client sent something after the server.
#[derive(Debug, Default)]
pub struct RoundTrips {
    count: AtomicU64,
    /// The connections on which the client was the last to send something.
    asking: Mutex<HashSet<u64>>,
}

impl RoundTrips {
    /// Returns the number of round trips since the last call.
    pub fn take(&self) -> u64 {
        self.asking().clear();
        self.count.swap(0, Ordering::SeqCst)
    }

    fn asking(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inspector for RoundTrips {
    fn inspect(&self, connection: u64, direction: Direction, piece: &[u8]) -> Verdict {
        match direction {
            Direction::Requests => {
                if piece != PING && self.asking().insert(connection) {
                    self.count.fetch_add(1, Ordering::SeqCst);
                }
            }
            Direction::Answers => {
                self.asking().remove(&connection);
            }
        }
        Verdict::Pass
    }
}
