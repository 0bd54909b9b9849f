//! A worker's shutdown, for the activities.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The state of a worker's shutdown. A stopping worker takes no more tasks, and its running attempts may go on for a
/// while. Clones share the state.
#[derive(Debug, Clone)]
pub struct Stopping {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Stopping {
    /// Makes the state of a worker that stops when `begun` is cancelled. Running attempts may then go on for `grace`. A
    /// task on the current runtime watches the time.
    pub fn new(begun: CancellationToken, grace: Duration) -> Self {
        let over = CancellationToken::new();
        let stopping = Self {
            begun: begun.clone(),
            over: over.clone(),
        };
        tokio::spawn(async move {
            begun.cancelled().await;
            tokio::time::sleep(grace).await;
            over.cancel();
        });
        stopping
    }

    /// True after the worker's shutdown has begun. An attempt that ends now without a cancel of its turn is made again
    /// elsewhere.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns the token that is cancelled when the worker's shutdown begins.
    pub(crate) fn begun(&self) -> CancellationToken {
        self.begun.clone()
    }

    /// Waits until the attempts' time after the shutdown is over.
    pub(crate) async fn is_over(&self) {
        self.over.cancelled().await;
    }
}
