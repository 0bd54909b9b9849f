//! The end of a worker, as its activities see it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Whether the worker stops. It takes no more tasks then, and what is in flight may go on for a while. Clones are the same.
#[derive(Debug, Clone)]
pub struct Stopping {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Stopping {
    /// A worker that stops when `begun` is cancelled. Its attempts may go on for so long then. A task on the current
    /// runtime watches the time.
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

    /// True once the worker stops: an attempt that ends now, although nobody cancelled its turn, is made again elsewhere.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Waits until the time is over that attempts have to end.
    pub(crate) async fn is_over(&self) {
        self.over.cancelled().await;
    }
}
