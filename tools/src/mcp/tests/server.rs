//! An MCP server over streamable HTTP that a test restarts.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// How a server answers in a session that it does not know.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    /// 404, as the protocol wants.
    NotFound,
    /// 400, with an error that has no id: `server-everything`.
    WithoutId,
    /// 400, with an error that has `null` as its id: the examples of the TypeScript SDK.
    NullId,
    /// 400, with an error that has a word as its id: the Python SDK.
    StrangeId,
    /// 400, with an error that has the request's id.
    WithId,
}

/// A response to a call of a tool, instead of the tool's answer.
#[derive(Debug, Clone)]
pub(super) struct Scripted {
    pub(super) status: u16,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The body, with the request's id in the stead of `ID`.
    pub(super) body: String,
}

impl Scripted {
    pub(super) fn json(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: &[("content-type", "application/json")],
            body: body.to_owned(),
        }
    }
}

/// The server. Its clones are one.
#[derive(Clone)]
pub(super) struct Server {
    address: SocketAddr,
    refusal: Refusal,
    state: Arc<Mutex<Sessions>>,
    /// The open streams of events.
    streams: watch::Sender<usize>,
    accepting: Arc<Mutex<Option<JoinHandle<io::Result<()>>>>>,
}

#[derive(Default)]
struct Sessions {
    known: BTreeSet<String>,
    begun: usize,
    calls: usize,
    tool: String,
    refuses_calls: bool,
    /// The responses to the next calls of a tool, in order.
    scripted: VecDeque<Scripted>,
    /// Ends the streams of events.
    life: CancellationToken,
}

impl Server {
    pub(super) async fn start(refusal: Refusal) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            refusal,
            state: Arc::default(),
            streams: watch::Sender::default(),
            accepting: Arc::default(),
        };
        server.rename_tool("echo");
        server.accept(listener);
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What a restart does that is over before anybody notices.
    pub(super) fn forget_sessions(&self) {
        let mut state = self.state();
        state.known.clear();
        std::mem::take(&mut state.life).cancel();
    }

    /// Nobody listens any more.
    pub(super) async fn stop(&self) {
        let accepting = self.accepting.lock().unwrap().take().unwrap();
        accepting.abort();
        assert!(accepting.await.unwrap_err().is_cancelled());
        self.forget_sessions();
    }

    pub(super) async fn start_again(&self) {
        self.accept(TcpListener::bind(self.address).await.unwrap());
    }

    pub(super) fn rename_tool(&self, name: &str) {
        name.clone_into(&mut self.state().tool);
    }

    /// Calls of tools are refused from now on as if their session were unknown.
    pub(super) fn refuse_calls(&self) {
        self.state().refuses_calls = true;
    }

    /// The next calls of a tool get these responses. They count as calls.
    pub(super) fn script(&self, responses: impl IntoIterator<Item = Scripted>) {
        self.state().scripted.extend(responses);
    }

    fn scripted(&self, id: &Value) -> Option<Response> {
        let mut state = self.state();
        let next = state.scripted.pop_front()?;
        state.calls += 1;
        let mut response = Response::builder().status(next.status);
        for (name, value) in next.headers {
            response = response.header(*name, *value);
        }
        let body = next.body.replace("ID", &id.to_string());
        Some(response.body(Body::from(body)).unwrap())
    }

    /// Sessions that were begun.
    pub(super) fn sessions(&self) -> usize {
        self.state().begun
    }

    /// Calls that the tool got.
    pub(super) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(super) async fn stream_is_open(&self) {
        let mut streams = self.streams.subscribe();
        streams.wait_for(|opened| *opened > 0).await.unwrap();
    }

    fn accept(&self, listener: TcpListener) {
        let routes = post(answer).get(listen).delete(StatusCode::OK);
        let router = Router::new().route("/mcp", routes).with_state(self.clone());
        let accepting = tokio::spawn(async move { axum::serve(listener, router).await });
        *self.accepting.lock().unwrap() = Some(accepting);
    }

    fn state(&self) -> MutexGuard<'_, Sessions> {
        self.state.lock().unwrap()
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let session = headers.get("mcp-session-id");
        session.is_some_and(|session| self.state().known.contains(session.to_str().unwrap()))
    }

    fn refuse(&self, request: &Value) -> Response {
        let mut body =
            json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}});
        match self.refusal {
            Refusal::NotFound | Refusal::NullId => body["id"] = Value::Null,
            Refusal::StrangeId => body["id"] = "server-error".into(),
            Refusal::WithId => body["id"] = request["id"].clone(),
            Refusal::WithoutId => {}
        }
        let status = match self.refusal {
            Refusal::NotFound => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        (status, Json(body)).into_response()
    }

    fn begin(&self) -> String {
        let mut state = self.state();
        state.begun += 1;
        let session = format!("session-{}", state.begun);
        state.known.insert(session.clone());
        session
    }

    fn call(&self, arguments: &Value) -> Value {
        self.state().calls += 1;
        if arguments["refuse"] == true {
            json!({"error": {"code": -32000, "message": "not today"}})
        } else {
            json!({"result": {"content": [{"type": "text", "text": "echo"}]}})
        }
    }
}

/// POST: one message of the client.
async fn answer(
    State(server): State<Server>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let method = request["method"].as_str().unwrap_or_default();
    if method == "initialize" {
        let result = json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        });
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        return ([("mcp-session-id", server.begin())], Json(answer)).into_response();
    }
    let refuses = method == "tools/call" && server.state().refuses_calls;
    if refuses || !server.knows(&headers) {
        return server.refuse(&request);
    }
    if method == "tools/call"
        && let Some(response) = server.scripted(&request["id"])
    {
        return response;
    }
    let mut answer = match method {
        "ping" => json!({"result": {}}),
        "tools/list" => {
            let tool = json!({"name": server.state().tool, "inputSchema": {"type": "object"}});
            json!({"result": {"tools": [tool]}})
        }
        "tools/call" => server.call(&request["params"]["arguments"]),
        _notification => return StatusCode::ACCEPTED.into_response(),
    };
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = request["id"].clone();
    Json(answer).into_response()
}

/// GET: a stream of events, open until the server ends.
async fn listen(State(server): State<Server>, headers: HeaderMap) -> Response {
    if !server.knows(&headers) {
        return server.refuse(&Value::Null);
    }
    let life = server.state().life.clone();
    server.streams.send_modify(|opened| *opened += 1);
    let open = stream::once(async { Ok::<_, io::Error>(": open\n\n") });
    let until_end = stream::once(async move {
        life.cancelled().await;
        Err(io::Error::other("the server has ended"))
    });
    let body = Body::from_stream(open.chain(until_end));
    ([("content-type", "text/event-stream")], body).into_response()
}
