//! The demo model: some rules behind OpenAI's API, so that users can try Everturn without a provider's key.
//!
//! The demo model is an HTTP server on loopback, and workers call it like any other provider. Therefore every part of
//! a turn runs, with streamed text and parallel tool calls. It never pretends to be a language model.
//!
//! - [`rules`]: from a request to a reply, and the rules of the built-in tools
//! - [`introduction`]: the answer to a message without a request
//! - [`own_tools`]: chooses one of the agent's own tools
//! - [`arguments`]: the arguments of a call, from [`properties`] of the tool and [`values`] of the message
//! - [`said`]: the words of a message
//! - [`wire`]: requests, chunks and errors in OpenAI's format
//!
//! Must not be here: anything a turn depends on. The demo model knows no store, no Temporal and no agent.

mod arguments;
mod introduction;
mod own_tools;
mod properties;
mod rules;
mod said;
#[cfg(test)]
mod tests;
mod values;
mod wire;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{StreamExt, stream};
use tokio::{net::TcpListener, task::JoinHandle};

/// The pause between two words: short, but long enough to make streaming visible.
const WORD_DELAY: Duration = Duration::from_millis(15);
/// The largest request. A request contains the conversation, which other code limits.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// The running demo model. Dropping it stops the server.
pub struct DemoModel {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl DemoModel {
    /// Starts the demo model on a free port of loopback. It needs no key.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(WORD_DELAY).await
    }

    async fn start_with(word_delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(word_delay);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the demo model stopped");
            }
        });
        Ok(Self { address, server })
    }

    /// Returns the base URL for a provider's configuration.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }
}

impl Drop for DemoModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn complete(State(word_delay): State<Duration>, body: Bytes) -> Response {
    let request: wire::Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(problem) => {
            let error = wire::error(&format!("The body cannot be read: {problem}."));
            let json = [(header::CONTENT_TYPE, "application/json")];
            return (StatusCode::BAD_REQUEST, json, error.to_string()).into_response();
        }
    };
    let chunks = wire::chunks(&request, &rules::reply(&request));
    let events = stream::iter(chunks).then(move |chunk| async move {
        tokio::time::sleep(word_delay).await;
        Ok::<_, io::Error>(format!("data: {chunk}\n\n"))
    });
    let event_stream = [(header::CONTENT_TYPE, "text/event-stream")];
    (event_stream, Body::from_stream(events)).into_response()
}
