//! Calls with an unknown outcome: the worker is killed in the middle of a `once` tool, and the tool's probe is asked before
//! the model is told. A real MCP server has the tool and the probe; a service has them over HTTP.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::any,
};
use everturn_tests::{
    events::{assert_gap_free, count, data, error, observe, result, types},
    mcp,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
    wait,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// How the server of the tool behaves.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// The payment is made, and the answer is lost.
    Paid,
    /// The call is lost before the payment.
    Before,
    /// The payment is made, and the probe fails.
    Broken,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Paid => "paid",
            Self::Before => "before",
            Self::Broken => "broken",
        }
    }
}

/// A model that pays once, and then says what it has read.
async fn paying() -> Model {
    Model::start(|request: &Request| {
        if request.results_since_user() > 0 {
            return Reply::text(&format!("I read: {}", request.last("tool")));
        }
        match request.last("user").as_str() {
            "pay" => Reply::text("").call("bank__pay", &json!({"amount": 1.5, "to": "ann"})),
            _ => Reply::text(&format!("I read: {}", request.last("tool"))),
        }
    })
    .await
}

/// A stack whose agent pays at the server, and the folder of the server.
struct Bank {
    stack: Stack,
    folder: TempDir,
}

impl Bank {
    async fn open(mode: Mode) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("mode"), mode.as_str()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("tests/e2e/embedded/outcomes/bank.py");
        let program = [mcp::python("python"), script, folder.path().to_owned()];
        let program = program.map(|part| part.display().to_string());
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let table = mcp::command("bank", &program, "probes = { pay = \"find_payment\" }");
        let agent = format!("tools = [\"bank__pay\"]\n{table}");
        let stack = Stack::with_agent(paying().await, &agent).await;
        Self { stack, folder }
    }

    /// Returns the entries that the server has noted.
    fn noted(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Runs a turn whose worker is killed while the tool runs. Returns the new worker, the conversation and its events.
    async fn interrupted(&self) -> (Process, String, Vec<Value>) {
        let stack = &self.stack;
        let worker = stack.worker();
        let (conversation, _) = stack.ask("pay").await;
        wait::until("the server is called", || async {
            (!self.noted("calls").is_empty()).then_some(())
        })
        .await;
        worker.kill().await;
        let next = stack.worker();
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(events.last().unwrap()["event_type"], "complete");
        assert_eq!(self.noted("calls").len(), 1, "the tool ran once");
        (next, conversation, events)
    }
}

fn said(events: &[Value]) -> &str {
    let answers = data(events, "assistant_message");
    answers.last().unwrap()["content"].as_str().unwrap()
}

#[tokio::test]
async fn a_probe_that_finds_the_call_gives_its_result() {
    let bank = Bank::open(Mode::Paid).await;
    let _gateway = bank.stack.gateway().await;
    let (_worker, _, events) = bank.interrupted().await;
    assert!(types(&events).contains("act outcome_probed observe"));
    assert_eq!(
        result(&events, "bank__pay"),
        &json!({"receipt": 7, "amount": 1.5})
    );
    assert!(said(&events).contains("receipt"), "{}", said(&events));
    let probed = data(&events, "outcome_probed")[0];
    let act = data(&events, "act")[0];
    assert_eq!(
        (&probed["probe"], &probed["outcome"]),
        (&json!("bank__find_payment"), &json!("happened"))
    );
    // The server of the new worker may still start at the first try.
    assert!(
        (1..=3).contains(&probed["tries"].as_u64().unwrap()),
        "{probed}"
    );
    assert_eq!(probed["execution_id"], act["execution_id"]);
    assert_eq!(probed["call_id"], act["call_id"]);
    let (calls, probes) = (bank.noted("calls"), bank.noted("probes"));
    assert_eq!(probes.len(), 1);
    assert_eq!(probes[0], json!({"key": calls[0]["key"], "amount": 1.5}));
}

#[tokio::test]
async fn a_probe_that_finds_no_call_says_so_to_the_model() {
    let bank = Bank::open(Mode::Before).await;
    let _gateway = bank.stack.gateway().await;
    let (_worker, _, events) = bank.interrupted().await;
    assert!(error(&events, "bank__pay").contains("did not happen"));
    assert_eq!(
        observe(&events, "bank__pay")["outcome_unknown"],
        Value::Null
    );
    assert_eq!(
        data(&events, "outcome_probed")[0]["outcome"],
        "not_happened"
    );
    assert!(said(&events).contains("did not happen"));
}

#[tokio::test]
async fn a_probe_that_fails_leaves_the_outcome_unknown() {
    let bank = Bank::open(Mode::Broken).await;
    let _gateway = bank.stack.gateway().await;
    let (_worker, conversation, events) = bank.interrupted().await;
    assert!(error(&events, "bank__pay").contains("may or may not"));
    assert_eq!(observe(&events, "bank__pay")["outcome_unknown"], true);
    let probed = data(&events, "outcome_probed")[0];
    assert_eq!(
        (&probed["outcome"], &probed["tries"]),
        (&json!("unknown"), &json!(3))
    );
    let message = probed["message"].as_str().unwrap();
    assert!(message.contains("find_payment"), "{message}");
    // The server of the new worker may still start at the first try.
    assert!((1..=3).contains(&bank.noted("probes").len()));
    a_person_settles(&bank.stack, &conversation, &events).await;
}

/// Settles the outcome of the turn's call, and asks again: the model reads the settled outcome.
async fn a_person_settles(stack: &Stack, conversation: &str, events: &[Value]) {
    let id = observe(events, "bank__pay")["execution_id"]
        .as_str()
        .unwrap();
    let path = format!("/conversations/{conversation}/tool-calls/{id}/outcome");
    let body = json!({"outcome": "happened", "result": {"receipt": 9}, "comment": "I saw it."});
    let (status, settled) = stack.post(&path, &body).await;
    assert_eq!(status, 200, "{settled}");
    assert_eq!(settled["outcome"], "happened");
    assert_eq!(
        stack.post(&path, &body).await,
        (200, settled),
        "a repeated request"
    );
    let (status, refused) = stack.post(&path, &json!({"outcome": "not_happened"})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("outcome_settled")));
    let settled = stack.events(conversation).await;
    assert_gap_free(&settled);
    assert_eq!(settled.len(), events.len() + 1);
    let event = &data(&settled, "outcome_settled")[0];
    assert_eq!(event["result"], json!({"receipt": 9}));
    assert_eq!(event["execution_id"], id);

    let message = json!({"content": "and now?", "message_id": "again"});
    let (status, sent) = stack.send(conversation, &message).await;
    assert_eq!(status, 202, "{sent}");
    let events = stack.ended(conversation, 2).await;
    assert!(said(&events).contains("receipt"), "{}", said(&events));
}

/// A service that answers a payment with 502, and tells of the payment by its key.
async fn service(paid: Arc<Mutex<Vec<(String, String)>>>) -> u16 {
    let answer = move |uri: Uri, headers: HeaderMap| {
        let key = headers.get("idempotency-key");
        let key = key.map_or("", |key| key.to_str().unwrap()).to_owned();
        paid.lock().unwrap().push((uri.to_string(), key.clone()));
        let known = paid.lock().unwrap();
        let is_paid = known.iter().any(|(uri, of)| uri == "/pay" && *of == key);
        let response: Response = match uri.path() {
            "/pay" => StatusCode::BAD_GATEWAY.into_response(),
            _ if is_paid => {
                Json(json!({"outcome": "happened", "result": {"receipt": 8}})).into_response()
            }
            _ => Json(json!({"outcome": "not_happened"})).into_response(),
        };
        async move { response }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(answer))).await });
    port
}

#[tokio::test]
async fn an_http_tool_has_a_probe_of_its_own_service() {
    let paid = Arc::<Mutex<Vec<_>>>::default();
    let port = service(Arc::clone(&paid)).await;
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("").call("pay", &json!({"amount": 3, "to": "ann"})),
        _ => Reply::text("Done."),
    });
    let input = "{ properties = { amount = { type = \"number\" }, to = { type = \"string\" } } }";
    let agent = format!(
        "tools = [\"pay\"]\n[egress]\nallow = [\"127.0.0.1\"]\n\
         [tools.pay]\ndescription = \"Pays.\"\nmethod = \"POST\"\nurl = \"http://127.0.0.1:{port}/pay\"\n\
         input = {input}\nprobe = \"payment\"\n\
         [tools.payment]\ndescription = \"Finds a payment.\"\nurl = \"http://127.0.0.1:{port}/payment?amount={{amount}}\"\n\
         input = {{ properties = {{ amount = {{ type = \"number\" }} }} }}\n"
    );
    let stack = Stack::with_agent(model.await, &agent).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker();
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(result(&events, "pay"), &json!({"receipt": 8}));
    assert_eq!(count(&events, "outcome_probed"), 1);
    let asked = paid.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[1].0, "/payment?amount=3");
    assert_eq!(asked[0].1, asked[1].1, "one key");
    assert!(!asked[0].1.is_empty());
}
