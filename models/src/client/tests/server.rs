//! The server of the tests: each request gets the next script, and is kept.

// Literals read better in a script than references to them.
#![allow(clippy::needless_pass_by_value)]

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::refused::{Who, problems};

/// What a request gets.
#[derive(Clone)]
pub(crate) struct Script {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Piece>,
}

#[derive(Clone)]
enum Piece {
    Text(String),
    Pause(Duration),
    Abort,
}

impl Script {
    /// A stream of these events, each a `data:` line.
    pub(crate) fn sse<T: ToString>(events: impl IntoIterator<Item = T>) -> Self {
        let pieces = events
            .into_iter()
            .map(|event| Piece::Text(format!("data: {}\n\n", event.to_string())))
            .collect();
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".into())],
            pieces,
        }
    }

    /// A stream of named events.
    pub(crate) fn named(events: impl IntoIterator<Item = Value>) -> Self {
        let event = |data: Value| {
            Piece::Text(format!(
                "event: {}\ndata: {data}\n\n",
                data["type"].as_str().unwrap()
            ))
        };
        Self {
            pieces: events.into_iter().map(event).collect(),
            ..Self::sse::<Value>([])
        }
    }

    /// An answer that is no stream.
    pub(crate) fn status(status: u16, body: impl ToString) -> Self {
        let pieces = vec![Piece::Text(body.to_string())];
        Self {
            status,
            headers: vec![("content-type", "application/json".into())],
            pieces,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Bytes as they are.
    pub(crate) fn then(mut self, text: impl ToString) -> Self {
        self.pieces.push(Piece::Text(text.to_string()));
        self
    }

    pub(crate) fn then_pause(mut self, pause: Duration) -> Self {
        self.pieces.push(Piece::Pause(pause));
        self
    }

    /// The connection breaks.
    pub(crate) fn then_abort(mut self) -> Self {
        self.pieces.push(Piece::Abort);
        self
    }

    fn response(self) -> Response {
        let pieces = stream::iter(self.pieces).filter_map(|piece| async {
            match piece {
                Piece::Text(text) => {
                    // Lets each piece leave on its own.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    Some(Ok(text))
                }
                Piece::Pause(pause) => {
                    tokio::time::sleep(pause).await;
                    None
                }
                Piece::Abort => Some(Err(io::Error::other("scripted"))),
            }
        });
        let response = Response::builder().status(self.status);
        let response = self
            .headers
            .iter()
            .fold(response, |response, (name, value)| {
                response.header(*name, value)
            });
        response.body(Body::from_stream(pieces)).unwrap()
    }
}

/// The answer to a request that a provider would refuse. Its test fails with these words.
fn refusal(path: &str, body: &Value) -> Option<Script> {
    let whose: &[Who] = match path {
        path if path.ends_with("/chat/completions") => &[Who::OpenAi, Who::Template],
        path if path.ends_with("/messages") => &[Who::Anthropic],
        path if path.ends_with(":streamGenerateContent") => &[Who::Gemini],
        path if path.ends_with("/responses") => &[Who::Responses],
        _ => &[],
    };
    // Cancels and other requests without a body.
    let whose = if body.is_null() { &[] } else { whose };
    let found: Vec<String> = whose.iter().flat_map(|who| problems(*who, body)).collect();
    let words = format!("refused by the validator: {found:?} in {body}");
    (!found.is_empty()).then(|| {
        eprintln!("{words}");
        Script::status(400, words)
    })
}

/// A request as it came.
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: Value,
}

#[derive(Clone)]
pub(crate) struct Server {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
        };
        let scripts = Arc::new(Mutex::new(scripts.into_iter().collect::<VecDeque<_>>()));
        let seen = server.seen.clone();
        let answer = move |request: Request| async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let refusal = refusal(parts.uri.path(), &body);
            seen.lock().unwrap().push(Seen {
                path: parts.uri.to_string(),
                headers: parts.headers,
                body,
            });
            let script = scripts.lock().unwrap().pop_front();
            refusal
                .or(script)
                .unwrap_or_else(|| Script::status(500, "no script is left"))
                .response()
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        server
    }

    /// The URL of the server without a `/` at its end, as people write it.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, taken out.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}
