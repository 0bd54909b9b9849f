//! A server behind a URL that refuses calls, or answers in a form that is not exact: what the model is told, how often the tool
//! ran, and that the calls of another conversation go on.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use everturn_tests::{
    events::{error, observe, result},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

/// How the server answers a call of a tool: a status, and a body in which `ID` stands for the request's id.
struct Answer {
    tool: &'static str,
    status: u16,
    body: &'static str,
}

const fn answer(tool: &'static str, status: u16, body: &'static str) -> Answer {
    Answer { tool, status, body }
}

const SERIALISED: &str = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32603,"message":"it cannot be serialised"}}"#;

/// After these answers nobody can tell whether the tool ran.
const UNKNOWN: [Answer; 7] = [
    answer("other_id_500", 500, SERIALISED),
    answer(
        "null_id_200",
        200,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost"}}"#,
    ),
    answer("other_id_400", 400, SERIALISED),
    answer("gateway_502", 502, "<html>Bad Gateway</html>"),
    answer("page_200", 200, "<html>Sign in</html>"),
    answer("cut_200", 200, r#"{"jsonrpc":"2.0","id":ID,"result":{"con"#),
    answer("number_200", 200, r#"{"jsonrpc":"2.0","id":ID,"result":7}"#),
];

/// With these answers the server refuses the call before the tool runs.
const REFUSED: [Answer; 5] = [
    answer("refused_401", 401, ""),
    answer("refused_403", 403, "<html>no</html>"),
    answer("refused_404", 404, "no such page"),
    answer("refused_429", 429, ""),
    answer("refused_413", 413, ""),
];

/// These answers are results.
const ANSWERED: [Answer; 8] = [
    answer(
        "structure",
        200,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"all of the file"}],"structuredContent":{"lines":3}}}"#,
    ),
    answer(
        "image",
        200,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"data:image/png;base64,iVBORw0KGgo="}],"structuredContent":{"content":[{"type":"image","data":"data:image/png;base64,iVBORw0KGgo="}]}}}"#,
    ),
    answer(
        "surrogate",
        200,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"cut \ud83d"}]}}"#,
    ),
    answer(
        "batch",
        200,
        r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"in a batch"}]}}]"#,
    ),
    answer(
        "blocks",
        200,
        r#"{"id":ID,"result":{"content":["bare",null,{"type":"hologram","x":1}]},"error":null}"#,
    ),
    answer(
        "nan",
        200,
        r#"log: {"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":NaN}}}"#,
    ),
    answer(
        "failed",
        200,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"content":[{"type":"text","text":"no such order"}],"structuredContent":{"code":7}}}"#,
    ),
    answer(
        "missing_404",
        404,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32004,"message":"order not found"}}"#,
    ),
];

/// The server. Its tool `wait` answers when the test lets it.
#[derive(Clone)]
struct Server {
    called: Arc<Mutex<Vec<String>>>,
    sessions: Arc<Mutex<usize>>,
    may_answer: watch::Sender<bool>,
}

impl Server {
    async fn start() -> (Self, String) {
        let server = Self {
            called: Arc::default(),
            sessions: Arc::default(),
            may_answer: watch::Sender::new(false),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    fn times_called(&self, tool: &str) -> usize {
        self.called
            .lock()
            .unwrap()
            .iter()
            .filter(|called| *called == tool)
            .count()
    }
}

fn all() -> impl Iterator<Item = &'static Answer> {
    UNKNOWN.iter().chain(&REFUSED).chain(&ANSWERED)
}

async fn serve(State(server): State<Server>, method: Method, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match request["method"].as_str() {
        _ if method != Method::POST => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
        Some("initialize") => {
            *server.sessions.lock().unwrap() += 1;
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
        }
        Some("tools/list") => {
            let names = all().map(|answer| answer.tool).chain(["wait"]);
            let tools: Vec<_> = names
                .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
                .collect();
            json!({"tools": tools})
        }
        Some("tools/call") => return call(&server, &request).await,
        Some("server/discover") => return StatusCode::NOT_FOUND.into_response(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
}

async fn call(server: &Server, request: &Value) -> Response {
    let tool = request["params"]["name"].as_str().unwrap();
    server.called.lock().unwrap().push(tool.to_owned());
    let (status, body) = if let Some(answer) = all().find(|answer| answer.tool == tool) {
        (answer.status, answer.body)
    } else {
        let mut may_answer = server.may_answer.subscribe();
        may_answer.wait_for(|may| *may).await.unwrap();
        (
            200,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"waited"}]}}"#,
        )
    };
    let body = body.replace("ID", &request["id"].to_string());
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

fn name(answer: &Answer) -> String {
    format!("web__{}", answer.tool)
}

/// A turn waits in a call of its own, while another conversation makes every other call.
#[tokio::test]
async fn a_refused_or_odd_answer_concerns_its_call_alone() {
    let (server, url) = Server::start().await;
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 if request.last("user") == "wait" => Reply::text("").call("web__wait", &json!({})),
        0 => all().fold(Reply::text(""), |reply, answer| {
            reply.call(&name(answer), &json!({}))
        }),
        _ => Reply::text("Done."),
    });
    let agent = format!(
        "tools = [\"web__*\"]\n\n[mcp.web]\nurl = \"{url}\"\neffects = {{ \"*\" = \"once\" }}\n"
    );
    let stack = Stack::with_agent(model.await, &agent).await;
    let _running = stack.start_with_one_worker().await;
    let (waiting, _) = stack.ask("wait").await;
    wait::until("the server has the call that waits", || async {
        (server.times_called("wait") == 1).then_some(())
    })
    .await;
    let (conversation, _) = stack.ask("all").await;
    let events = stack.ended(&conversation, 1).await;
    what_may_have_run_is_unknown(&events, &server);
    what_was_refused_has_its_status(&events, &server);
    what_was_answered_is_a_result(&events, &server);
    server.may_answer.send_replace(true);
    let events = stack.ended(&waiting, 1).await;
    assert_eq!(result(&events, "web__wait"), "waited");
    assert_eq!(*server.sessions.lock().unwrap(), 1, "the connection stays");
}

fn what_may_have_run_is_unknown(events: &[Value], server: &Server) {
    for answer in &UNKNOWN {
        let why = error(events, &name(answer));
        assert!(why.contains("may or may not"), "{}: {why}", answer.tool);
        assert_eq!(server.times_called(answer.tool), 1, "{}", answer.tool);
    }
}

fn what_was_refused_has_its_status(events: &[Value], server: &Server) {
    for answer in &REFUSED {
        let (why, status) = (error(events, &name(answer)), answer.status.to_string());
        assert!(
            why.contains(&status) && why.contains("not called"),
            "{}: {why}",
            answer.tool
        );
        // A busy server is asked three times, because nothing ran.
        let times = if answer.status == 429 { 3 } else { 1 };
        assert_eq!(server.times_called(answer.tool), times, "{}", answer.tool);
    }
}

fn what_was_answered_is_a_result(events: &[Value], server: &Server) {
    let given = |tool: &str| result(events, &format!("web__{tool}"));
    assert_eq!(given("structure"), "all of the file");
    assert_eq!(given("surrogate"), "cut \u{FFFD}");
    assert_eq!(given("batch"), "in a batch");
    assert_eq!(
        *given("blocks"),
        json!(["bare", r#"{"type":"hologram","x":1}"#])
    );
    assert_eq!(*given("nan"), json!({"a": null}));
    let image = given("image");
    assert!(
        image["blob_id"].is_string() && image["type"] == "image/png",
        "{image}"
    );
    assert!(!image.to_string().contains("iVBOR"), "{image}");
    assert!(error(events, "web__failed").contains("no such order"));
    assert!(error(events, "web__missing_404").contains("order not found"));
    for answer in &ANSWERED {
        assert_eq!(server.times_called(answer.tool), 1, "{}", answer.tool);
        let told = observe(events, &name(answer)).to_string();
        assert!(!told.contains("may or may not"), "{told}");
    }
}
