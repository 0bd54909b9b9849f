//! A connection to PostgreSQL that counts round trips, stalls, ends, or loses the answer to a COMMIT.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use everturn_test_servers::proxy::{Direction, Inspector, Passing, Proxy, Verdict};

/// The `Sync` message alone: how sqlx pings a connection that comes back to its pool.
const PING: &[u8] = b"S\0\0\0\x04";

/// Passes connections on to a PostgreSQL of this machine.
pub struct Line {
    pub port: u16,
    proxy: Proxy,
    wire: Arc<Wire>,
}

/// What is understood of PostgreSQL's protocol.
#[derive(Default)]
struct Wire {
    round_trips: AtomicU32,
    /// The client spoke last.
    is_asking: AtomicBool,
    /// The next COMMIT reaches the server, and its answer reaches nobody.
    loses_commit: AtomicBool,
    /// The connection on which that COMMIT was sent; 0 before.
    lost_connection: AtomicU64,
}

impl Line {
    pub async fn to(port: u16) -> Self {
        let wire = Arc::<Wire>::default();
        let proxy = Proxy::inspected(port, wire.clone()).await;
        Self {
            port: proxy.port(),
            proxy,
            wire,
        }
    }

    /// Round trips since the last call: times that the client spoke after the server did.
    pub fn round_trips(&self) -> u32 {
        self.wire.is_asking.store(false, Ordering::SeqCst);
        self.wire.round_trips.swap(0, Ordering::SeqCst)
    }

    /// While it is stalled, nothing passes and nobody is told.
    pub fn stall(&self, is_stalled: bool) {
        self.proxy.pass(if is_stalled {
            Passing::Nothing
        } else {
            Passing::All
        });
    }

    /// The next COMMIT takes effect, but instead of the answer the client sees its connection end.
    pub fn lose_commit(&self) {
        self.wire.loses_commit.store(true, Ordering::SeqCst);
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.proxy.cut();
    }
}

impl Inspector for Wire {
    fn inspect(&self, connection: u64, direction: Direction, piece: &[u8]) -> Verdict {
        match direction {
            Direction::Requests => {
                if is_commit(piece) && self.loses_commit.swap(false, Ordering::SeqCst) {
                    self.lost_connection.store(connection, Ordering::SeqCst);
                }
                if piece != PING && !self.is_asking.swap(true, Ordering::SeqCst) {
                    self.round_trips.fetch_add(1, Ordering::SeqCst);
                }
                Verdict::Pass
            }
            Direction::Answers => {
                self.is_asking.store(false, Ordering::SeqCst);
                // The server has answered, so it has done what it was asked for.
                if self.lost_connection.load(Ordering::SeqCst) == connection {
                    Verdict::End
                } else {
                    Verdict::Pass
                }
            }
        }
    }
}

fn is_commit(bytes: &[u8]) -> bool {
    // The whole text of a query: `BEGIN … READ COMMITTED` is another one.
    const COMMIT: &[u8] = b"COMMIT\0";
    bytes.windows(COMMIT.len()).any(|part| part == COMMIT)
}
