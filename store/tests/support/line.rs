//! A line to the server: counts round trips, stalls, cuts, loses the answer to a COMMIT.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};

/// The `Sync` message alone: how sqlx pings a connection that comes back to its pool.
const PING: &[u8] = b"S\0\0\0\x04";

/// Passes connections on to a port of this machine.
pub struct Line {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    round_trips: AtomicU32,
    /// The client spoke last.
    is_asking: AtomicBool,
    /// Nothing passes, nobody is told.
    stalled: watch::Sender<bool>,
    /// Counts cuts: connections end when it changes.
    cuts: watch::Sender<u32>,
    /// The next COMMIT reaches the server, and its answer reaches nobody.
    loses_commit: AtomicBool,
}

impl Line {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(State {
            round_trips: AtomicU32::new(0),
            is_asking: AtomicBool::new(false),
            stalled: watch::Sender::new(false),
            cuts: watch::Sender::new(0),
            loses_commit: AtomicBool::new(false),
        });
        let line = Self {
            port: listener.local_addr().unwrap().port(),
            state: state.clone(),
        };
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let is_lost = Arc::new(AtomicBool::new(false));
                tokio::spawn(pass(
                    from_client,
                    to_server,
                    state.clone(),
                    is_lost.clone(),
                    true,
                ));
                tokio::spawn(pass(from_server, to_client, state.clone(), is_lost, false));
            }
        });
        line
    }

    /// Round trips since the last call: times that the client spoke after the server did.
    pub fn round_trips(&self) -> u32 {
        self.state.is_asking.store(false, Ordering::SeqCst);
        self.state.round_trips.swap(0, Ordering::SeqCst)
    }

    pub fn stall(&self, is_stalled: bool) {
        self.state.stalled.send_replace(is_stalled);
    }

    /// The next COMMIT takes effect, but instead of the answer the client sees its connection end.
    pub fn lose_commit(&self) {
        self.state.loses_commit.store(true, Ordering::SeqCst);
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// One direction of a connection. `is_lost`: what the server answers on it from now on is not passed on.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: Arc<State>,
    is_lost: Arc<AtomicBool>,
    is_client: bool,
) {
    let (mut stalled, mut cuts) = (state.stalled.subscribe(), state.cuts.subscribe());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap_or(0),
            _ = cuts.changed() => 0,
        };
        if count == 0 {
            return;
        }
        let bytes = &buffer[..count];
        if is_client {
            if is_commit(bytes) && state.loses_commit.swap(false, Ordering::SeqCst) {
                is_lost.store(true, Ordering::SeqCst);
            }
            if bytes != PING && !state.is_asking.swap(true, Ordering::SeqCst) {
                state.round_trips.fetch_add(1, Ordering::SeqCst);
            }
        } else {
            state.is_asking.store(false, Ordering::SeqCst);
            // The server has answered, so it has done what it was asked for. The client sees the connection end.
            if is_lost.load(Ordering::SeqCst) {
                return;
            }
        }
        tokio::select! {
            open = stalled.wait_for(|is_stalled| !is_stalled) => drop(open),
            _ = cuts.changed() => return,
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

fn is_commit(bytes: &[u8]) -> bool {
    // The whole text of a query: `BEGIN … READ COMMITTED` is another one.
    const COMMIT: &[u8] = b"COMMIT\0";
    bytes.windows(COMMIT.len()).any(|part| part == COMMIT)
}
