//! Turns Ctrl-C and SIGTERM into one token.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first SIGINT or SIGTERM cancels. The second signal ends the process immediately.
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
                // Another worker takes over the work in flight, as after a crash.
                std::process::exit(130);
            }
        }
    });
    Ok(token)
}
