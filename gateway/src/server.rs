//! Serves the router until it is told to stop.

use std::io;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{routes::router, state::GatewayState},
    listener::StallGuardedListener,
};

/// Serves until `shutdown` is cancelled. Then, in this order: for `drain` it says that it is not ready, and takes no
/// new streams; it tells open streams to reconnect, and ends them; it closes the listener, and lets requests in flight
/// finish. What is still open `shutdown_grace` after the drain is cut.
pub async fn serve(
    listener: TcpListener,
    state: GatewayState,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let state = state.with_shutdown(shutdown.clone());
    let (drain, grace) = (state.config.drain, state.config.shutdown_grace);
    let listener = StallGuardedListener::new(listener, state.config.stall_timeout);
    let closing = state.closing.clone();
    let close_listener = {
        let state = state.clone();
        async move {
            state.closing.cancelled().await;
            state.streams_closed().await;
        }
    };
    // The service is made here once. Given the router itself, axum would copy all routes for each connection.
    let service = router(state).into_make_service();
    let serving = axum::serve(listener, service).with_graceful_shutdown(close_listener);
    let stop = async {
        shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
        closing.cancel();
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = serving => result,
        () = stop => {
            tracing::warn!("the gateway stops with connections still open");
            Ok(())
        }
    }
}
