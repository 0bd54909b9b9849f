//! The demo model: a set of rules behind OpenAI's wire, so that Everturn can be tried without a provider's key.
//!
//! It is an HTTP server on loopback, called like any other provider: the whole way of a turn runs, with streamed
//! text and parallel tool calls. It never pretends to be a language model.
//!
//! - [`wire`]: requests, chunks and errors as OpenAI writes them
//! - [`rules`]: what is asked for, from the last message to tool calls
//! - [`arithmetic`], [`places`]: what the rules recognise
//! - [`answer`]: tool results in words
//!
//! Must not be here: anything a turn depends on. The demo model knows no store, no engine and no agent.

mod answer;
mod arithmetic;
mod places;
mod rules;
mod wire;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{StreamExt, stream};
use tokio::{net::TcpListener, task::JoinHandle};

/// Between two words: fast, and slow enough to see that they stream.
const TOKEN_DELAY: Duration = Duration::from_millis(15);
/// A request holds the conversation, which is bounded elsewhere.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// The running demo model; it stops when this is dropped.
pub struct DemoModel {
    address: SocketAddr,
    server: JoinHandle<()>,
}

/// How the demo model runs.
#[derive(Debug, Clone, Copy)]
pub struct DemoOptions {
    /// Where it listens; port 0 for any free one. Keep it on loopback: it asks for no key.
    pub listen: SocketAddr,
    /// Pause between two words.
    pub token_delay: Duration,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            token_delay: TOKEN_DELAY,
        }
    }
}

impl DemoModel {
    /// Starts it on a free port of loopback.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(DemoOptions::default()).await
    }

    /// Starts it.
    pub async fn start_with(options: DemoOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router(options)).await {
                tracing::error!(%error, "the demo model stopped");
            }
        });
        Ok(Self { address, server })
    }

    /// Its base URL, as a provider's configuration has it.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }
}

impl Drop for DemoModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn router(options: DemoOptions) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .fallback(async || {
            error(
                StatusCode::NOT_FOUND,
                "The demo model only knows POST /v1/chat/completions.",
            )
        })
        .with_state(options)
}

async fn complete(
    State(options): State<DemoOptions>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return error(rejection.status(), &rejection.body_text()),
    };
    let request: wire::Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(problem) => {
            return error(
                StatusCode::BAD_REQUEST,
                &format!("The body cannot be read: {problem}."),
            );
        }
    };
    let reply = rules::reply(&request);
    if !request.stream {
        return json(
            StatusCode::OK,
            wire::completion(&request, &reply).to_string(),
        );
    }
    let chunks = wire::chunks(&request, &reply);
    let events = stream::iter(chunks).then(move |chunk| async move {
        if chunk.is_word {
            tokio::time::sleep(options.token_delay).await;
        }
        Ok::<_, io::Error>(format!("data: {}\n\n", chunk.data))
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(events),
    )
        .into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    json(status, wire::error(message).to_string())
}

fn json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests;
