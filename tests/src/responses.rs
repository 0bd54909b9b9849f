//! A scripted model behind the wire of OpenAI's Responses API, with responses that run in the background: each goes on
//! when nobody reads it, and can be read from any event on. It runs in the test's process.

use std::{
    collections::HashMap,
    future::ready,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use everturn_models::refused::Who;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::{validated::refusal, wait};

/// The time between two pieces of a text.
const PACE: Duration = Duration::from_millis(5);

/// A response as a script wants it.
#[derive(Debug, Clone, Default)]
pub struct Script {
    reasoning: Vec<String>,
    text: Vec<String>,
    is_held: bool,
    is_silent: bool,
    failing: Option<&'static str>,
}

impl Script {
    /// Makes a response with a text that is streamed word by word.
    pub fn text(text: &str) -> Self {
        Self {
            text: words(text),
            ..Self::default()
        }
    }

    /// Adds a summary of the model's thoughts, which comes before the text.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        Self {
            reasoning: words(text),
            ..self
        }
    }

    /// Makes the model wait in the middle of the text until [`Responses::release`].
    #[must_use]
    pub fn held(self) -> Self {
        Self {
            is_held: true,
            ..self
        }
    }

    /// Makes the provider answer nothing, not even the id of the response, until [`Responses::release`].
    #[must_use]
    pub fn silent(self) -> Self {
        Self {
            is_silent: true,
            ..self
        }
    }

    /// Makes the response fail with this code where it would have ended.
    #[must_use]
    pub fn failing(self, code: &'static str) -> Self {
        Self {
            failing: Some(code),
            ..self
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// A response, with the events that have happened so far.
struct Kept {
    /// The response without its status and its output.
    base: Value,
    status: &'static str,
    output: Vec<Value>,
    events: Vec<Value>,
}

impl Kept {
    fn response(&self) -> Value {
        let mut response = self.base.clone();
        response["status"] = json!(self.status);
        response["output"] = json!(self.output);
        if self.status == "completed" {
            response["usage"] = json!({
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 2},
            });
        }
        response
    }

    fn push(&mut self, mut event: Value) {
        event["sequence_number"] = json!(self.events.len());
        self.events.push(event);
    }

    fn push_response(&mut self, event: &str) {
        let response = self.response();
        self.push(json!({"type": event, "response": response}));
    }

    fn has_ended(&self) -> bool {
        !matches!(self.status, "queued" | "in_progress")
    }
}

type Writer = dyn Fn(usize) -> Script + Send + Sync;

/// What the requests and their answers share.
struct Shared {
    script: Box<Writer>,
    kept: Mutex<HashMap<String, Kept>>,
    /// The bodies of the requests for a response: each is paid.
    paid: Mutex<Vec<Value>>,
    cancelled: Mutex<Vec<String>>,
    /// The addresses of the requests to read a response again.
    reads: Mutex<Vec<String>>,
    /// Counts the changes of all responses.
    changes: watch::Sender<u64>,
    /// Counts how often all connections were cut.
    cuts: watch::Sender<u64>,
    is_released: watch::Sender<bool>,
}

/// A running provider.
#[derive(Clone)]
pub struct Responses {
    shared: Arc<Shared>,
    port: u16,
}

impl Responses {
    /// Starts a provider that makes each response as `script` says, which gets the number of the response, from 1.
    pub async fn start(script: impl Fn(usize) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            kept: Mutex::default(),
            paid: Mutex::default(),
            cancelled: Mutex::default(),
            reads: Mutex::default(),
            changes: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
            is_released: watch::Sender::new(false),
        });
        let app = Router::new()
            .route("/v1/responses", post(create))
            .route("/v1/responses/{id}", get(retrieve))
            .route("/v1/responses/{id}/cancel", post(cancel))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { shared, port }
    }

    /// Returns the base URL for `everturn.toml`.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/", self.port)
    }

    /// Returns the bodies of the requests for a response: so many were paid.
    pub fn paid(&self) -> Vec<Value> {
        self.shared.paid.lock().unwrap().clone()
    }

    /// Returns the ids of the responses that were cancelled, once for each request.
    pub fn cancelled(&self) -> Vec<String> {
        self.shared.cancelled.lock().unwrap().clone()
    }

    /// Waits until a response was read again so many times as a stream.
    pub async fn read_again(&self, times: usize) {
        let reads = || self.shared.reads.lock().unwrap().len();
        wait::until(&format!("{times} streams were asked for"), || {
            ready((reads() >= times).then_some(()))
        })
        .await;
    }

    /// Returns after which events the streams began that were asked for again, with the ids of their responses.
    pub fn reads(&self) -> Vec<String> {
        self.shared.reads.lock().unwrap().clone()
    }

    /// Lets the responses that wait, and all later ones, run to their end.
    pub fn release(&self) {
        self.shared.is_released.send_replace(true);
    }

    /// Cuts every connection over which a response is read. The responses go on.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Forgets all responses, as a provider does some minutes after their end.
    pub fn forget(&self) {
        self.shared.kept.lock().unwrap().clear();
    }
}

impl Shared {
    /// Waits until [`Responses::release`].
    async fn released(&self) {
        let mut released = self.is_released.subscribe();
        let _ = released.wait_for(|released| *released).await;
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Kept)) -> bool {
        let mut kept = self.kept.lock().unwrap();
        let found = kept.get_mut(id).filter(|kept| !kept.has_ended());
        let is_running = found.map(change).is_some();
        drop(kept);
        self.changes.send_modify(|changes| *changes += 1);
        is_running
    }
}

async fn create(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response {
    if let Some(words) = refusal(&[Who::Responses], &body) {
        let body = json!({"error": {"message": words, "code": "invalid_request_error"}});
        return (StatusCode::BAD_REQUEST, Json(body)).into_response();
    }
    let number = {
        let mut paid = shared.paid.lock().unwrap();
        paid.push(body.clone());
        paid.len()
    };
    let id = format!("resp_{number}");
    let base = json!({"id": id, "object": "response", "model": body["model"], "background": true});
    let mut kept = Kept {
        base,
        status: "in_progress",
        output: Vec::new(),
        events: Vec::new(),
    };
    kept.push_response("response.created");
    kept.push_response("response.in_progress");
    shared.kept.lock().unwrap().insert(id.clone(), kept);
    let script = (shared.script)(number);
    let is_silent = script.is_silent;
    tokio::spawn(write(Arc::clone(&shared), id.clone(), script));
    if is_silent {
        shared.released().await;
    }
    streamed(&shared, id, 0)
}

/// Writes a response to its end, whoever reads it.
async fn write(shared: Arc<Shared>, id: String, script: Script) {
    for piece in &script.reasoning {
        tokio::time::sleep(PACE).await;
        let event = json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0,
            "delta": piece});
        shared.change(&id, |kept| kept.push(event));
    }
    let middle = script.text.len() / 2;
    for (at, piece) in script.text.iter().enumerate() {
        tokio::time::sleep(PACE).await;
        if at == middle && script.is_held {
            shared.released().await;
        }
        let event = json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0,
            "delta": piece});
        if !shared.change(&id, |kept| kept.push(event)) {
            return;
        }
    }
    shared.change(&id, |kept| {
        let reasoning = json!({"type": "reasoning", "id": "rs_1",
            "summary": [{"type": "summary_text", "text": script.reasoning.concat()}]});
        let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "content": [{"type": "output_text", "text": script.text.concat()}]});
        if let Some(code) = script.failing {
            kept.status = "failed";
            kept.base["error"] = json!({"code": code, "message": "scripted"});
            kept.push_response("response.failed");
        } else {
            kept.status = "completed";
            kept.output = vec![reasoning, message];
            kept.push_response("response.completed");
        }
    });
}

async fn retrieve(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let response = shared.kept.lock().unwrap().get(&id).map(Kept::response);
    match response {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(_) if query.contains_key("stream") => {
            let after = query.get("starting_after");
            let read = format!("{id} after {}", after.map_or("nothing", String::as_str));
            shared.reads.lock().unwrap().push(read);
            streamed(
                &shared,
                id,
                after.map_or(0, |last| last.parse::<usize>().unwrap() + 1),
            )
        }
        Some(response) => Json(response).into_response(),
    }
}

async fn cancel(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    shared.cancelled.lock().unwrap().push(id.clone());
    shared.change(&id, |kept| kept.status = "cancelled");
    let response = shared.kept.lock().unwrap().get(&id).map(Kept::response);
    response.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        |response| Json(response).into_response(),
    )
}

/// Streams the events of a response from this one on.
fn streamed(shared: &Arc<Shared>, id: String, from: usize) -> Response {
    let body = Body::from_stream(events(Arc::clone(shared), id, from));
    ([("content-type", "text/event-stream")], body).into_response()
}

fn events(
    shared: Arc<Shared>,
    id: String,
    from: usize,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let (changes, cuts) = (shared.changes.subscribe(), shared.cuts.subscribe());
    stream::unfold(Some((shared, id, from, changes, cuts)), |reading| async {
        let (shared, id, next, mut changes, mut cuts) = reading?;
        loop {
            changes.mark_unchanged();
            let (event, has_ended) = {
                let kept = shared.kept.lock().unwrap();
                let kept = kept.get(&id)?;
                (kept.events.get(next).cloned(), kept.has_ended())
            };
            if let Some(event) = event {
                let name = event["type"].as_str().unwrap();
                let frame = Bytes::from(format!("event: {name}\ndata: {event}\n\n"));
                return Some((Ok(frame), Some((shared, id, next + 1, changes, cuts))));
            }
            if has_ended {
                return None;
            }
            tokio::select! {
                _ = changes.changed() => {}
                _ = cuts.changed() => return Some((Err(io::Error::other("cut")), None)),
            }
        }
    })
}
