//! A scripted model behind a real HTTP server, which speaks the wires of OpenAI, Anthropic and Gemini. It runs in the test's
//! process, so it still counts requests when workers and gateways are killed.

mod frames;
mod request;
mod wires;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};

use self::frames::frames;
pub use self::{request::Request, wires::Wire};
use crate::validated::refusal;

/// The time between two pieces of a reply, so that they arrive as a stream and not in one read.
const PACE: Duration = Duration::from_micros(200);

/// What a reply took, as a provider bills it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// Tokens read, with the cached ones.
    pub input_tokens: u64,
    /// Tokens written, with those of the reasoning.
    pub output_tokens: u64,
    /// Tokens that were cached. They are part of `input_tokens`.
    pub cached_tokens: u64,
    /// Tokens of the reasoning. They are part of `output_tokens`.
    pub reasoning_tokens: u64,
}

/// What a reply took unless it says something else.
const USAGE: CallUsage = CallUsage {
    input_tokens: 10,
    output_tokens: 5,
    cached_tokens: 0,
    reasoning_tokens: 0,
};

/// A piece of a text.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    /// The time at which it is sent.
    Stamp,
}

/// The model's answer to one request.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pieces: Vec<Piece>,
    /// The time between two pieces; [`PACE`] when there is none.
    pace: Option<Duration>,
    /// The time over which the pieces are spread evenly, instead of a pace.
    over: Option<Duration>,
    calls: Vec<(String, String, String)>,
    /// Whether the rest of the reply is held back until [`Model::release`].
    is_held: bool,
    /// Whether the body ends without the end mark that the protocol demands.
    is_cut: bool,
    /// An event that stands as it is before the end of the reply.
    event: Option<String>,
    /// Whether the reply ends at the limit of tokens.
    is_at_limit: bool,
    /// What it says that it took; [`USAGE`] when there is none.
    usage: Option<CallUsage>,
    error: Option<Refusal>,
}

impl Reply {
    /// Makes a reply with a text that is streamed word by word.
    pub fn text(text: &str) -> Self {
        Self {
            pieces: text
                .split_inclusive(' ')
                .map(|word| Piece::Text(word.to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    /// Makes a reply with a text of `count` tokens.
    pub fn tokens(count: usize) -> Self {
        Self {
            pieces: (0..count)
                .map(|n| Piece::Text(format!("token{n} ")))
                .collect(),
            ..Self::default()
        }
    }

    /// Makes a reply with a text that is streamed in these pieces, with the time `pace` between two.
    pub fn pieces(pieces: Vec<String>, pace: Duration) -> Self {
        Self {
            pieces: pieces.into_iter().map(Piece::Text).collect(),
            pace: Some(pace),
            ..Self::default()
        }
    }

    /// Makes a reply with a text that is streamed in these pieces, which are spread evenly over a time: the last one is
    /// sent at its end. Unlike [`Reply::pieces`], it does not take longer because timers are late.
    pub fn spread(pieces: Vec<String>, over: Duration) -> Self {
        Self {
            over: Some(over),
            ..Self::pieces(pieces, Duration::ZERO)
        }
    }

    /// Makes a reply whose tokens are the times at which they are sent ([`stamp`]), with the time `pace` between two.
    pub fn stamps(count: usize, pace: Duration) -> Self {
        Self {
            pieces: vec![Piece::Stamp; count],
            pace: Some(pace),
            ..Self::default()
        }
    }

    /// Adds a tool call to the reply.
    #[must_use]
    pub fn call(self, tool: &str, arguments: &Value) -> Self {
        self.raw_call(tool, &arguments.to_string())
    }

    /// Adds a tool call whose arguments need not be JSON.
    #[must_use]
    pub fn raw_call(mut self, tool: &str, arguments: &str) -> Self {
        let id = format!("call_{}", uuid::Uuid::new_v4().simple());
        self.calls.push((id, tool.to_owned(), arguments.to_owned()));
        self
    }

    /// Gives every tool call the same id, as careless models do.
    #[must_use]
    pub fn with_call_id(mut self, id: &str) -> Self {
        for call in &mut self.calls {
            id.clone_into(&mut call.0);
        }
        self
    }

    /// Makes the model stream the text, and then wait until [`Model::release`].
    #[must_use]
    pub fn held(self) -> Self {
        Self {
            is_held: true,
            ..self
        }
    }

    /// Makes the model stream the text, and then end the body without the end mark that the protocol demands.
    #[must_use]
    pub fn cut(self) -> Self {
        Self {
            is_cut: true,
            ..self
        }
    }

    /// Makes the model stream the text, then this event as it is, and then the rest of the reply.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        Self {
            event: Some(data.to_owned()),
            ..self
        }
    }

    /// Makes the reply end because the limit of tokens is reached.
    #[must_use]
    pub fn at_limit(self) -> Self {
        Self {
            is_at_limit: true,
            ..self
        }
    }

    /// Makes the reply say that it took so many tokens, of which so many of those read were cached.
    #[must_use]
    pub fn taking(self, usage: CallUsage) -> Self {
        Self {
            usage: Some(usage),
            ..self
        }
    }

    /// Makes a reply that is an HTTP error with this status.
    pub fn error(status: u16, code: &str) -> Self {
        Self {
            error: Some(Refusal {
                status,
                code: code.to_owned(),
                headers: Vec::new(),
            }),
            ..Self::default()
        }
    }

    fn whole_text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Stamp => "",
        });
        texts.collect()
    }

    /// Adds a response header to a reply that is an error.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Some(error) = &mut self.error {
            error.headers.push((name, value.to_owned()));
        }
        self
    }
}

/// A reply that is an error.
#[derive(Debug, Clone)]
struct Refusal {
    status: u16,
    /// What the provider names it, which is in its message, too.
    code: String,
    headers: Vec<(&'static str, String)>,
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

#[derive(Clone)]
struct Shared {
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<Request>>>,
    released: watch::Sender<bool>,
    abandoned: Arc<AtomicUsize>,
    keeps_no_bodies: Arc<AtomicBool>,
    /// When each reply that was read to its end has begun, and how long it took.
    spoken: Arc<Mutex<Vec<(Instant, Duration)>>>,
    /// What each reply took that was read to its end, by the number of its request.
    ledger: Arc<Mutex<BTreeMap<usize, CallUsage>>>,
}

/// A running model.
#[derive(Clone)]
pub struct Model {
    shared: Shared,
    port: u16,
}

impl Model {
    /// Starts a model that answers as `script` says.
    pub async fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Shared {
            script: Arc::new(script),
            requests: Arc::default(),
            released: watch::Sender::new(false),
            abandoned: Arc::default(),
            keeps_no_bodies: Arc::default(),
            spoken: Arc::default(),
            ledger: Arc::default(),
        };
        let app = Router::new()
            .route("/v1/chat/completions", post(on(Wire::OpenAi)))
            .route("/v1/messages", post(on(Wire::Anthropic)))
            .route("/v1beta/models/{call}", post(on(Wire::Gemini)))
            .route("/v1/responses", post(on(Wire::Responses)))
            .route("/v1/responses/{id}", get(gone))
            .with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { shared, port }
    }

    /// Returns the base URL for `everturn.toml`.
    pub fn base_url(&self) -> String {
        self.base_url_of(Wire::OpenAi)
    }

    /// Returns the base URL of a wire for `everturn.toml`.
    pub fn base_url_of(&self, wire: Wire) -> String {
        format!("http://127.0.0.1:{}{}", self.port, wire.base_path())
    }

    /// Returns the bodies of all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns what each reply took that was read to its end, by the number of its request: what a provider bills.
    /// Replies whose reader left before their end are not in it ([`Model::abandoned`]).
    pub fn ledger(&self) -> BTreeMap<usize, CallUsage> {
        self.shared.ledger.lock().unwrap().clone()
    }

    /// Keeps no bodies of requests from now on. Only the script sees them: those of a long turn would not fit into memory.
    pub fn keep_no_bodies(&self) {
        self.shared.keeps_no_bodies.store(true, Ordering::Relaxed);
    }

    /// Forgets all requests and replies so far, and counts from 1 again: a long measurement must not keep them all.
    pub fn forget_requests(&self) {
        self.shared.requests.lock().unwrap().clear();
        self.shared.spoken.lock().unwrap().clear();
        self.shared.ledger.lock().unwrap().clear();
    }

    /// Returns how long the replies took in all that have begun since then, and were read to their end.
    pub fn spoken_since(&self, since: Instant) -> Duration {
        let spoken = self.shared.spoken.lock().unwrap();
        let later = spoken.iter().filter(|(begun, _)| *begun >= since);
        later.map(|(_, took)| *took).sum()
    }

    /// Returns the number of replies whose reader left before their end.
    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::Relaxed)
    }

    /// Returns the number of replies that are being read now.
    pub fn speaking(&self) -> usize {
        let asked = self.shared.requests.lock().unwrap().len();
        let spoken = self.shared.spoken.lock().unwrap().len();
        asked.saturating_sub(spoken + self.abandoned())
    }

    /// Lets the replies that are held back, and all later ones, run to their end.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

/// The handler of a wire.
fn on(
    wire: Wire,
) -> impl Fn(State<Shared>, HeaderMap, Bytes) -> futures::future::Ready<Response> + Clone {
    move |State(shared), headers, body| {
        futures::future::ready(complete(wire, &shared, headers, &body))
    }
}

/// A response that was made before. There is none; the answer repeats the headers, as some servers do.
async fn gone(headers: HeaderMap) -> Response {
    let message = format!("There is no such response for {headers:?}.");
    let body = Wire::Responses.error(404, &message, "not_found");
    (StatusCode::NOT_FOUND, axum::Json(body)).into_response()
}

fn complete(wire: Wire, shared: &Shared, headers: HeaderMap, body: &[u8]) -> Response {
    let arrived = Instant::now();
    let request = {
        let mut requests = shared.requests.lock().unwrap();
        let request = Request {
            number: requests.len() + 1,
            wire,
            body: serde_json::from_slice(body).unwrap_or_default(),
            key: wires::key(&headers),
            headers,
            arrived,
        };
        requests.push(if shared.keeps_no_bodies.load(Ordering::Relaxed) {
            Request {
                body: Value::Null,
                key: request.key.clone(),
                headers: HeaderMap::new(),
                ..request
            }
        } else {
            request.clone()
        });
        request
    };
    if let Some(words) = refusal(wire.whose(&request.headers), &request.body) {
        let body = wire.error(400, &words, "invalid_request_error");
        return (StatusCode::BAD_REQUEST, axum::Json(body)).into_response();
    }
    let reply = (shared.script)(&request);
    if let Some(refusal) = reply.error {
        return refused(wire, refusal);
    }
    let reading = Reading {
        is_over: false,
        begun: Instant::now(),
        number: request.number,
        usage: reply.usage.unwrap_or(USAGE),
        shared: shared.clone(),
    };
    let end = stream::once(async move {
        reading.end();
        Ok(Bytes::new())
    });
    let body = Body::from_stream(frames(wire, reply, shared.released.subscribe()).chain(end));
    ([("content-type", "text/event-stream")], body).into_response()
}

fn refused(wire: Wire, refusal: Refusal) -> Response {
    let Refusal {
        status,
        code,
        headers,
    } = refusal;
    let body = wire.error(status, &format!("scripted {code}"), &code);
    let mut response = (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response();
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value.parse().unwrap());
    }
    response
}

/// A reply that is being read. If it is dropped before its end, it counts as abandoned.
struct Reading {
    is_over: bool,
    begun: Instant,
    number: usize,
    usage: CallUsage,
    shared: Shared,
}

impl Reading {
    fn end(mut self) {
        self.is_over = true;
        let spoken = (self.begun, self.begun.elapsed());
        self.shared.spoken.lock().unwrap().push(spoken);
        let mut ledger = self.shared.ledger.lock().unwrap();
        ledger.insert(self.number, self.usage);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.abandoned.fetch_add(1, Ordering::Relaxed);
        }
    }
}
