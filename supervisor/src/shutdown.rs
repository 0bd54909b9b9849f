//! Turns Ctrl-C and SIGTERM into one token.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first SIGINT or SIGTERM cancels. The second signal ends the process immediately.
pub fn token() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut interrupt = listener(SignalKind::interrupt(), "SIGINT")?;
    let mut terminate = listener(SignalKind::terminate(), "SIGTERM")?;
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

fn listener(kind: SignalKind, name: &str) -> io::Result<Signal> {
    signal(kind)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot listen for {name}: {error}")))
}
