//! Serves the router until `shutdown` is cancelled.

use std::{convert::Infallible, io, pin::pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
    serve::Listener,
};
use everturn_telemetry::gateway as telemetry;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::{
    config::{ConnectionLimits, GatewayConfig},
    connections::{
        body::{Answer, Pace, paced},
        client::Peer,
        listener::{Guarded, StallGuardedListener},
        slots::{NoSlot, Slot, Slots, Unsent},
    },
    http::{routes::router, state::GatewayState},
};

/// Serves until `shutdown` is cancelled. The gateway then stops in four steps. First, the gateway reports "not ready"
/// for the time `drain` and takes no new streams. Second, the gateway tells open streams to reconnect and ends the
/// streams. Third, the gateway closes the listener. Fourth, requests in flight may finish. `shutdown_grace` after the
/// drain, the gateway cuts the remaining connections.
pub async fn serve(
    listener: TcpListener,
    state: GatewayState,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let state = state.with_shutdown(shutdown.clone());
    let (drain, grace) = (state.config.drain, state.config.shutdown_grace);
    let closing = state.closing.clone();
    let last_stream = {
        let state = state.clone();
        async move {
            state.closing.cancelled().await;
            state.streams_closed().await;
        }
    };
    let listener = StallGuardedListener::new(listener, state.config.stall_timeout);
    let server = Server::new(&state.config, router(state.clone()));
    let stop = async {
        shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
        closing.cancel();
        tokio::time::sleep(grace).await;
    };
    let share = state.limits.share();
    let sharing = async {
        match &share {
            Some(share) => share.run().await,
            None => std::future::pending().await,
        }
    };
    let refusals = state.auth.refusals();
    tokio::select! {
        () = server.run(listener, last_stream) => {}
        () = refusals.run() => {}
        () = sharing => {}
        () = stop => tracing::warn!("the gateway stops, and closes the connections that are still open"),
    }
    refusals.end().await;
    if let Some(share) = &share {
        share.end().await;
    }
    Ok(())
}

/// The settings and state shared by every connection.
struct Server {
    http: http1::Builder,
    router: Router,
    slots: Arc<Slots>,
    pace: Pace,
}

impl Server {
    fn new(config: &GatewayConfig, router: Router) -> Self {
        let limits: &ConnectionLimits = &config.connections;
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(limits.max_header_bytes);
        Self {
            http,
            router,
            slots: Slots::new(limits.most, limits.most_of_address),
            pace: Pace {
                base: limits.body_timeout,
                bytes_per_second: limits.body_bytes_per_second,
            },
        }
    }

    /// Accepts connections until `stop`, then lets the open connections finish their requests.
    async fn run(&self, mut listener: StallGuardedListener, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let closing = CancellationToken::new();
        // Dropping `open` ends every connection.
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                (io, address) = listener.accept() => match Slots::enter(&self.slots, address.ip()) {
                    Ok(slot) => {
                        open.spawn(self.connection(io, Peer(address.ip()), slot, closing.clone()));
                    }
                    Err(NoSlot::Full) => telemetry::refused_connection("full"),
                    Err(NoSlot::Address) => telemetry::refused_connection("address"),
                },
                Some(_) = open.join_next() => {}
                () = &mut stop => break,
            }
        }
        drop(listener);
        closing.cancel();
        while open.join_next().await.is_some() {}
    }

    /// Serves a connection until the client ends it, until the connection loses its slot, or until `closing` is
    /// cancelled and the running request is done.
    fn connection(
        &self,
        io: Guarded<tokio::net::TcpStream>,
        peer: Peer,
        slot: Slot,
        closing: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        let slot = Arc::new(slot);
        let service = {
            let (router, pace, slot) = (self.router.clone(), self.pace, Arc::clone(&slot));
            let unsent = io.unsent();
            service_fn(move |request| {
                let unsent = unsent.clone();
                answer(router.clone(), request, peer, pace, &slot, unsent)
            })
        };
        let connection = self.http.serve_connection(TokioIo::new(io), service);
        async move {
            let mut connection = pin!(connection);
            let mut is_closing = false;
            loop {
                tokio::select! {
                    result = connection.as_mut() => {
                        if let Err(error) = result {
                            tracing::debug!(%error, "a connection has ended with an error");
                        }
                        return;
                    }
                    () = slot.lost() => return telemetry::refused_connection("idle"),
                    () = closing.cancelled(), if !is_closing => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }
}

/// Has the router answer a request. The connection keeps its connection slot until the whole answer is sent.
fn answer(
    mut router: Router,
    request: Request<Incoming>,
    peer: Peer,
    pace: Pace,
    slot: &Arc<Slot>,
    unsent: Unsent,
) -> impl Future<Output = Result<Response<Answer>, Infallible>> + Send + use<> {
    let answering = Slot::answer(slot);
    let mut request = request.map(|body| paced(body, pace));
    request.extensions_mut().insert(peer);
    // A router is always ready.
    let answered = Service::<Request<Body>>::call(&mut router, request);
    async move {
        let response = answered.await?;
        Ok(response.map(|body| Answer::new(body, answering, unsent)))
    }
}
