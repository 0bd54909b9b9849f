//! A proxy in front of PostgreSQL that counts round trips, stalls, cuts connections, or loses the answer to a statement.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use everturn_test_servers::{
    proxy::{Direction, Inspector, Passing, Proxy, Verdict},
    round_trips::RoundTrips,
};

/// Passes connections on to a PostgreSQL of this machine.
pub struct Line {
    pub port: u16,
    proxy: Proxy,
    wire: Arc<Wire>,
}

/// What the proxy has understood of PostgreSQL's protocol.
#[derive(Default)]
struct Wire {
    round_trips: RoundTrips,
    /// True when the next statement shall reach the server, and its answer nobody.
    loses_answer: AtomicBool,
    /// The connection on which that statement was sent; 0 before that.
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

    /// Returns the number of round trips since the last call.
    pub fn round_trips(&self) -> u64 {
        self.wire.round_trips.take()
    }

    /// Stalls all connections, or ends the stall. While it lasts, nothing passes, and neither side is told.
    pub fn stall(&self, is_stalled: bool) {
        self.proxy.pass(if is_stalled {
            Passing::Nothing
        } else {
            Passing::All
        });
    }

    /// Loses the answer to the next statement with parameters: it takes effect, but the client sees its connection end.
    pub fn lose_answer(&self) {
        self.wire.loses_answer.store(true, Ordering::SeqCst);
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.proxy.cut();
    }
}

impl Inspector for Wire {
    fn inspect(&self, connection: u64, direction: Direction, piece: &[u8]) -> Verdict {
        self.round_trips.inspect(connection, direction, piece);
        match direction {
            Direction::Requests => {
                if is_statement(piece) && self.loses_answer.swap(false, Ordering::SeqCst) {
                    self.lost_connection.store(connection, Ordering::SeqCst);
                }
                Verdict::Pass
            }
            Direction::Answers => {
                // The server has answered, so the statement has taken effect.
                if self.lost_connection.load(Ordering::SeqCst) == connection {
                    Verdict::End
                } else {
                    Verdict::Pass
                }
            }
        }
    }
}

/// True for the message `Bind`, with which sqlx runs a statement that is prepared.
fn is_statement(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'B')
}
