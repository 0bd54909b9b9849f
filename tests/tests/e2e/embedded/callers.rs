//! Tools know for whom they run, whatever the model says: every kind of tool is told tenant, owner, conversation, agent and
//! executions by the store, and a service that an HTTP tool calls can tell a true request from a forged one.

use std::{
    collections::BTreeMap,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method, Uri},
    routing::any,
};
use everturn_client::GatewayClient;
use everturn_tests::{
    events::result,
    mcp::{self, EVERYTHING},
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use signed_tool::{Received, verify};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

use crate::embedded::{
    keys::{AUTH, create},
    mcp::told,
};

const SECRET: &str = "a-secret-that-only-the-service-knows";

/// What the model is talked into: it names another tenant wherever it can.
const INJECTED: &str = "acme";

fn keys() -> BTreeMap<String, String> {
    [("k1".to_owned(), SECRET.to_owned())].into()
}

/// The service of `examples/signed-tool` in Python, and its address.
async fn python_service() -> (Child, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/signed-tool/service.py");
    let mut service = Command::new("python3")
        .arg(script)
        .env("SIGNING_KEYS", json!(keys()).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().unwrap();
    (service, format!("http://127.0.0.1:{port}"))
}

/// A request as a service in Rust has received it.
#[derive(Clone)]
struct Taken {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Taken {
    /// The caller by the example's check, at this time.
    fn caller_at(&self, now: SystemTime) -> Option<BTreeMap<&'static str, &str>> {
        let received = Received {
            method: self.method.as_str(),
            path_and_query: self.uri.path_and_query().unwrap().as_str(),
            body: &self.body,
        };
        let header = |name: &str| self.headers.get(name).map(|value| value.to_str().unwrap());
        verify(received, header, &keys(), now)
    }

    fn caller(&self) -> Option<BTreeMap<&'static str, &str>> {
        self.caller_at(SystemTime::now())
    }

    fn with_header(&self, name: &'static str, value: &'static str) -> Self {
        let mut changed = self.clone();
        changed.headers.insert(name, value.parse().unwrap());
        changed
    }
}

/// A service in Rust that keeps its requests; `/moved` redirects within it.
async fn rust_service() -> (String, Arc<Mutex<Vec<Taken>>>) {
    let taken = Arc::<Mutex<Vec<Taken>>>::default();
    let record = Arc::clone(&taken);
    let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let is_moved = uri.path() == "/moved";
        record.lock().unwrap().push(Taken {
            method,
            uri,
            headers,
            body,
        });
        async move {
            if is_moved {
                return Err((axum::http::StatusCode::FOUND, [("location", "/here?q=1")]));
            }
            Ok("{}")
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(answer))).await });
    (url, taken)
}

/// A table `[tools.<name>]` whose requests are signed.
fn signed(name: &str, method: &str, url: &str, more: &str) -> String {
    format!(
        "[tools.{name}]\ndescription = \"For a test.\"\nmethod = \"{method}\"\nurl = \"{url}\"\n{more}\n\
         signing = {{ key_id = \"k1\", secret_env = \"SIGNING_KEY\" }}\n"
    )
}

/// Sends a message as somebody, waits for the end of the turn, and returns the conversation and its events.
pub(crate) async fn turn_of(stack: &Stack, key: &str, agent: &str) -> (String, Vec<Value>) {
    let client = GatewayClient::with_token(&stack.url(), Some(key)).unwrap();
    let conversation = client.create_conversation(Some(agent)).await.unwrap();
    client.submit(&conversation, "go", None).await.unwrap();
    let events = ended(stack, key, &conversation).await;
    (conversation, events)
}

/// Waits until a turn of the conversation has ended, and returns the events that this key may read.
pub(crate) async fn ended(stack: &Stack, key: &str, conversation: &str) -> Vec<Value> {
    let url = format!(
        "{}/api/v1/agent/conversations/{conversation}/events",
        stack.url()
    );
    let http = reqwest::Client::new();
    wait::until("the turn has ended", || async {
        let request = http.get(&url).bearer_auth(key).send().await.ok()?;
        let page: Value = request.json().await.ok()?;
        let events = page["events"].as_array()?.clone();
        let last = events.last()?["event_type"].as_str()?;
        matches!(last, "complete" | "error" | "cancelled").then_some(events)
    })
    .await
}

#[tokio::test]
async fn every_kind_of_tool_is_told_for_whom_it_runs() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("orders", &json!({"tenant": INJECTED}))
            .call("test_hostile", &json!({"act": "caller"}))
            .call("every__echo", &json!({"message": INJECTED}))
            .call("transfer", &json!({"amount": 5})),
        _ => Reply::text("Done."),
    });
    let files = TempDir::new().unwrap();
    let (_service, url) = python_service().await;
    let tools = PythonTools::new(model.await).await;
    let stack = &tools.stack;
    let input = "input = { properties = { tenant = { type = \"string\" } } }";
    stack.configure(&format!(
        "{AUTH}\n[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         tools = [\"orders\", \"test_hostile\", \"every__*\", \"transfer\"]\n{}{}\n[egress]\nallow = [\"127.0.0.1\"]\n",
        signed("orders", "POST", &format!("{url}/orders"), input),
        mcp::watched("every", EVERYTHING, files.path(), ""),
    ));
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_with(&[("SIGNING_KEY", SECRET)]);
    let key = create(stack, &["--tenant", "globex", "--owner", "gus"]).await;
    let ((conversation, events), _python) =
        tokio::join!(turn_of(stack, &key, "clerk"), tools.worker_for(1));

    let caller = &result(&events, "orders")["body"]["caller"];
    assert_eq!(caller["Everturn-Tenant-Id"], "globex", "{events:#?}");
    assert_eq!(caller["Everturn-Owner-Id"], "gus");
    assert_eq!(caller["Everturn-Conversation-Id"], conversation);
    assert_eq!(caller["Everturn-Agent"], "clerk");

    let variables = result(&events, "test_hostile").as_str().unwrap();
    assert!(
        variables.contains("EVERTURN_TENANT_ID=globex\n"),
        "{variables}"
    );
    assert!(variables.contains("EVERTURN_OWNER_ID=gus\n"), "{variables}");
    assert!(variables.contains("EVERTURN_AGENT=clerk\n"), "{variables}");
    assert!(variables.contains("EVERTURN_DEPTH=0\n"), "{variables}");
    assert!(variables.contains("EVERTURN_TOOL_CALL_ID="), "{variables}");
    assert_eq!(variables.lines().count(), 8, "{variables}");

    let calls = told(files.path(), "every");
    let call = calls
        .iter()
        .find(|call| call["method"] == "tools/call")
        .unwrap();
    let meta = &call["params"]["_meta"];
    assert_eq!(meta["everturn/tenant_id"], "globex");
    assert_eq!(meta["everturn/owner_id"], "gus");
    assert_eq!(meta["everturn/agent"], "clerk");
    assert_eq!(meta["everturn/depth"], "0");

    let transfer = result(&events, "transfer");
    assert_eq!(transfer["tenant_id"], "globex", "{transfer}");
}

#[tokio::test]
async fn a_service_tells_a_true_request_from_a_forged_one() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("pay", &json!({"order": "a/b", "tenant": INJECTED}))
            .call("moved", &json!({})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let (url, taken) = rust_service().await;
    let input = "input = { properties = { order = { type = \"string\" }, tenant = {} }, required = [\"order\"] }";
    stack.configure(&format!(
        "{AUTH}\n[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"pay\", \"moved\"]\n\
         {}{}[egress]\nallow = [\"127.0.0.1\"]\n",
        signed("pay", "POST", &format!("{url}/orders/{{order}}?by=model"), input),
        signed("moved", "GET", &format!("{url}/moved"), ""),
    ));
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_with(&[("SIGNING_KEY", SECRET)]);
    // An owner's name may hold nearly anything.
    let key = create(&stack, &["--tenant", "globex", "--owner", "eve%0D%0A: é"]).await;
    let (_, events) = turn_of(&stack, &key, "clerk").await;
    result(&events, "moved");

    let taken = taken.lock().unwrap().clone();
    let find = |path: &str| taken.iter().find(|it| it.uri.path() == path).unwrap();
    let (paid, moved, here) = (find("/orders/a%2Fb"), find("/moved"), find("/here"));
    let caller = paid.caller().unwrap();
    assert_eq!(caller["everturn-tenant-id"], "globex");
    assert_eq!(caller["everturn-owner-id"], "eve%250D%250A%3A%20%C3%A9");
    assert!(moved.caller().is_some() && here.caller().is_some());
    assert_ne!(
        moved.headers["everturn-signature"],
        here.headers["everturn-signature"]
    );

    let mut unsigned = paid.clone();
    unsigned.headers.remove("everturn-signature");
    let mut elsewhere = paid.clone();
    elsewhere.uri = "/orders/c?by=model".parse().unwrap();
    let mut other_body = paid.clone();
    other_body.body = "{\"tenant\":\"globex\"}".into();
    let mut other_method = paid.clone();
    other_method.method = Method::PUT;
    let mut without_owner = paid.clone();
    without_owner.headers.remove("everturn-owner-id");
    let forged = [
        unsigned,
        elsewhere,
        other_body,
        other_method,
        without_owner,
        paid.with_header("everturn-tenant-id", INJECTED),
        paid.with_header("everturn-agent", "admin"),
        paid.with_header("everturn-signature", "key=k2,time=1,v1=00"),
    ];
    for (number, request) in forged.iter().enumerate() {
        assert!(request.caller().is_none(), "forgery {number} was believed");
    }
    for later in [Duration::from_secs(310), Duration::from_secs(3600)] {
        assert!(paid.caller_at(SystemTime::now() + later).is_none());
        assert!(paid.caller_at(SystemTime::now() - later).is_none());
    }
}
