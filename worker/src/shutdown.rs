//! Ctrl-C and SIGTERM as one token.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first SIGINT or SIGTERM. The second one ends the process at once.
pub fn token() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let cancelled = token.clone();
    tokio::spawn(async move {
        for is_first in [true, false] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if is_first {
                cancelled.cancel();
            } else {
                // What was in flight is taken over by another worker, as after a crash.
                std::process::exit(130);
            }
        }
    });
    Ok(token)
}
