//! HTTP tools in whole turns: an endpoint that is called, one that is not allowed, and one whose answer is too large.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::any,
};
use everturn_tests::{
    events::{error, observe},
    model::{Model, Reply, Request},
    stack::Stack,
};
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const TOKEN: &str = "token-of-the-service";
/// Largest memory that the worker may use, in bytes. It uses 65 MB here, and the answer of the endpoint has 1 GB.
const MAX_PEAK_BYTES: u64 = 300 << 20;

/// An HTTP service, and the requests that it got: request line, idempotency key, body.
struct Service {
    port: u16,
    asked: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl Service {
    async fn start() -> Self {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let record = Arc::clone(&asked);
        let answer =
            move |method: axum::http::Method, uri: Uri, headers: HeaderMap, body: String| {
                let key = headers
                    .get("idempotency-key")
                    .map_or("", |key| key.to_str().unwrap())
                    .to_owned();
                let count = {
                    let mut asked = record.lock().unwrap();
                    asked.push((format!("{method} {uri}"), key, body));
                    asked.len()
                };
                async move { respond(&uri, &headers, count) }
            };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(
            async move { axum::serve(listener, Router::new().fallback(any(answer))).await },
        );
        Self { port, asked }
    }

    fn lines(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|(line, ..)| line.clone())
            .collect()
    }
}

fn respond(uri: &Uri, headers: &HeaderMap, count: usize) -> Response {
    match uri.path() {
        "/busy" if count < 3 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
        "/down" => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after-ms", "10")]).into_response(),
        "/broken" => (StatusCode::UNPROCESSABLE_ENTITY, "amount is missing").into_response(),
        "/to" => (StatusCode::FOUND, [("location", uri.query().unwrap_or_default().to_owned())]).into_response(),
        "/flood" => {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            Body::from_stream(stream::iter((0..1024).map(move |_| Ok::<_, std::io::Error>(piece.clone()))))
                .into_response()
        }
        "/silence" => Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()).into_response(),
        _ => {
            axum::Json(json!({"ok": true, "authorization": headers.get("authorization").map(|v| v.to_str().unwrap())}))
                .into_response()
        }
    }
}

/// Returns tables `[tools.*]` for these tools on a service, and an agent that may use them.
fn agent(port: u16, allow: &str, tools: &[(&str, &str)]) -> String {
    let names: Vec<_> = tools
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let tables = tools.iter().map(|(name, table)| {
        let table = table.replace("$SERVICE", &format!("http://127.0.0.1:{port}"));
        format!("[tools.{name}]\ndescription = \"For a test.\"\n{table}\n")
    });
    let tables: Vec<_> = tables.collect();
    format!(
        "tools = [{}]\n[egress]\nallow = [{allow}]\n{}",
        names.join(", "),
        tables.concat()
    )
}

/// Runs a turn that makes these calls at once, and returns the stack and all events.
async fn turn(agent: &str, calls: &[(&'static str, Value)]) -> (Stack, Vec<Value>) {
    let calls = calls.to_vec();
    let model = Model::start(
        move |request: &Request| match request.results_since_user() {
            0 => calls.iter().fold(Reply::text(""), |reply, (tool, input)| {
                reply.call(tool, input)
            }),
            _ => Reply::text("Done."),
        },
    );
    let stack = Stack::with_agent(model.await, agent).await;
    let _gateway = stack.gateway().await;
    // Tools must not use a proxy of the environment, because it would resolve names that the worker has not checked.
    let proxy = [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let worker = stack.worker_with(&[("SERVICE_TOKEN", TOKEN), proxy[0], proxy[1], proxy[2]]);
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        events.last().unwrap()["event_type"],
        "complete",
        "{events:#?}"
    );
    let peak = worker.peak_memory_bytes();
    assert!(peak < MAX_PEAK_BYTES, "a worker held {peak} bytes");
    (stack, events)
}

#[tokio::test]
async fn an_endpoint_is_called_and_its_secret_stays_secret() {
    let service = Service::start().await;
    let tools = [
        (
            "pay",
            "method = \"POST\"\nurl = \"$SERVICE/users/{id}/payments\"\nauth = { bearer_env = \"SERVICE_TOKEN\" }\n\
             input = { properties = { id = { type = \"string\" }, amount = { type = \"number\" } }, required = [\"id\"] }",
        ),
        ("broken", "method = \"POST\"\nurl = \"$SERVICE/broken\""),
    ];
    let calls = [
        (
            "pay",
            json!({"id": "a/b", "amount": 9_007_199_254_740_993_u64}),
        ),
        ("broken", json!({})),
    ];
    let (stack, events) = turn(&agent(service.port, "\"127.0.0.1\"", &tools), &calls).await;
    assert_eq!(
        observe(&events, "pay")["result"]["body"]["ok"],
        true,
        "{events:#?}"
    );
    assert_eq!(
        observe(&events, "pay")["result"]["body"]["authorization"],
        "Bearer ***"
    );
    assert!(
        error(&events, "broken").contains("422")
            && error(&events, "broken").contains("amount is missing")
    );
    let asked = service.asked.lock().unwrap().clone();
    let (line, key, body) = asked
        .iter()
        .find(|(line, ..)| line.contains("payments"))
        .unwrap();
    assert_eq!(
        (line.as_str(), body.as_str()),
        (
            "POST /users/a%2Fb/payments",
            r#"{"amount":9007199254740993}"#
        )
    );
    let execution_id = observe(&events, "pay")["execution_id"].as_str().unwrap();
    assert!(key.ends_with(&format!("/{execution_id}")), "{key}");
    let log = std::fs::read_to_string(stack.path("worker.log")).unwrap();
    let requests = stack
        .model
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect::<String>();
    for (place, text) in [
        ("log", log),
        ("events", format!("{events:?}")),
        ("the model", requests),
    ] {
        assert!(!text.contains(TOKEN), "the secret is in {place}");
    }
}

#[tokio::test]
async fn a_busy_service_is_asked_again_when_the_effect_allows() {
    let service = Service::start().await;
    let tools = [("read", "url = \"$SERVICE/busy\"")];
    let (_stack, events) = turn(
        &agent(service.port, "\"127.0.0.1\"", &tools),
        &[("read", json!({}))],
    )
    .await;
    assert_eq!(
        observe(&events, "read")["result"]["body"]["ok"],
        true,
        "{events:#?}"
    );
    assert_eq!(service.lines(), ["GET /busy"; 3]);

    let service = Service::start().await;
    let tools = [("read", "url = \"$SERVICE/down\"")];
    let (_stack, events) = turn(
        &agent(service.port, "\"127.0.0.1\"", &tools),
        &[("read", json!({}))],
    )
    .await;
    assert!(
        error(&events, "read").contains("503"),
        "what stays broken is observed in the end"
    );
    assert_eq!(service.lines(), ["GET /down"; 5]);

    let service = Service::start().await;
    let tools = [("write", "method = \"POST\"\nurl = \"$SERVICE/busy\"")];
    let (_stack, events) = turn(
        &agent(service.port, "\"127.0.0.1\"", &tools),
        &[("write", json!({}))],
    )
    .await;
    assert!(error(&events, "write").contains("503"));
    assert_eq!(
        service.lines(),
        ["POST /busy"],
        "a once tool is never repeated"
    );
}

#[tokio::test]
async fn what_the_policy_refuses_is_said_so() {
    let service = Service::start().await;
    let tools = [
        (
            "metadata",
            "url = \"http://169.254.169.254/latest/meta-data/\"",
        ),
        ("loopback", "url = \"http://[::1]:80/\""),
        ("odd", "url = \"http://0x7f.1/\""),
        ("name", "url = \"http://localhost/\""),
        (
            "to_metadata",
            "url = \"$SERVICE/to?http://169.254.169.254/latest/\"",
        ),
        ("to_loopback", "url = \"$SERVICE/to?http://[::1]/\""),
        ("to_name", "url = \"$SERVICE/to?http://localhost/\""),
    ];
    let calls: Vec<_> = tools.iter().map(|(name, _)| (*name, json!({}))).collect();
    let allow = format!("\"127.0.0.1:{}\"", service.port);
    let (_stack, events) = turn(&agent(service.port, &allow, &tools), &calls).await;
    for (name, _) in &tools {
        assert!(
            error(&events, name).contains("is refused"),
            "{name}: {}",
            error(&events, name)
        );
    }
    assert_eq!(
        service.lines().len(),
        3,
        "only the redirects were asked for: {:?}",
        service.lines()
    );
}

#[tokio::test]
async fn a_flood_is_cut_and_silence_ends() {
    let service = Service::start().await;
    let tools = [
        ("flood", "url = \"$SERVICE/flood\""),
        (
            "silence",
            "url = \"$SERVICE/silence\"\nmethod = \"POST\"\ntimeout = \"1s\"",
        ),
    ];
    let calls = [("flood", json!({})), ("silence", json!({}))];
    let (_stack, events) = turn(&agent(service.port, "\"127.0.0.1\"", &tools), &calls).await;
    assert!(
        error(&events, "flood").contains("more than 1048576 bytes"),
        "{}",
        error(&events, "flood")
    );
    let silence = error(&events, "silence");
    assert!(
        silence.contains("took too long") && silence.contains("may or may not have had its effect"),
        "{silence}"
    );
}
