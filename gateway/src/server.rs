//! Serving the router until told to stop.

use std::io;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{listener::StallGuardedListener, router, state::GatewayState};

/// Serves until `shutdown` is cancelled. Then it accepts nothing more, ends every open stream, and gives requests
/// in flight the configured grace to finish.
pub async fn serve(listener: TcpListener, state: GatewayState, shutdown: CancellationToken) -> io::Result<()> {
    let state = state.with_shutdown(shutdown.clone());
    let grace = state.config.shutdown_grace;
    let listener = StallGuardedListener::new(listener, state.config.stall_timeout);
    let serving = axum::serve(listener, router(state)).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    tokio::select! {
        result = serving => result,
        () = async { shutdown.cancelled().await; tokio::time::sleep(grace).await } => {
            tracing::warn!("the gateway stops with connections still open");
            Ok(())
        }
    }
}
