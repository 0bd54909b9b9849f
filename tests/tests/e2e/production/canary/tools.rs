//! The secrets of HTTP tools and of MCP servers, whatever a service or a server repeats of them.

use std::path::Path;

use axum::{
    Json, Router,
    extract::Path as Name,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{any, post},
};
use everturn_tests::{
    events::{count, data},
    mcp,
    model::{Model, Reply, Request},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Secret, Watched, assert_without};

/// Stands in everything that repeats a secret, so that it can be seen that it was said.
const SAID: &str = "the parrot said";

/// The tools of the service, each the name of what it answers with.
const HTTP_TOOLS: [&str; 6] = ["json", "text", "binary", "unauthorized", "busy", "moved"];
/// Tools of the server behind a URL.
const WEB_TOOLS: [&str; 6] = [
    "text",
    "stream",
    "fails",
    "refuses",
    "unauthorized",
    "typed",
];
/// Tools of the server with a command (`gossip.py`).
const LOCAL_TOOLS: [&str; 4] = ["text", "structured", "fails", "refuses"];

/// What was sent, as the service repeats it: each secret, without and with its scheme.
fn words(headers: &HeaderMap) -> String {
    let value = |name: &str| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        let value = value.unwrap_or_default();
        let token = value.trim_start_matches("Bearer ");
        assert!(token.len() > 30, "`{name}` was sent");
        format!("{value} and {token}")
    };
    let [authorization, key] = ["authorization", "x-api-key"].map(value);
    format!("{SAID} {authorization}, {key}")
}

/// The service of the HTTP tools.
async fn service(Name(tool): Name<String>, headers: HeaderMap) -> Response {
    let words = words(&headers);
    match tool.as_str() {
        "json" => Json(json!({ words.clone(): [words] })).into_response(),
        "text" => words.into_response(),
        "binary" => ([b"\xff".as_slice(), words.as_bytes()].concat()).into_response(),
        "unauthorized" => (
            StatusCode::UNAUTHORIZED,
            [("www-authenticate", words.clone())],
            words,
        )
            .into_response(),
        "busy" => (
            StatusCode::SERVICE_UNAVAILABLE,
            [("retry-after-ms", "10".to_owned())],
            words,
        )
            .into_response(),
        _ => (
            StatusCode::FOUND,
            [(
                "location",
                format!("http://127.0.0.1:9/?{}", words.replace(' ', "+")),
            )],
        )
            .into_response(),
    }
}

/// The MCP server behind a URL.
async fn server(headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let words = words(&headers);
    let params = &request["params"];
    let text = json!([{"type": "text", "text": words}]);
    let mut answer = match request["method"].as_str().unwrap() {
        "initialize" => json!({"result": {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": words, "version": "1"},
            "instructions": words,
        }}),
        "ping" => json!({"result": {}}),
        "tools/list" => {
            let schema = json!({"type": "object", "description": words});
            let tool = |name| json!({"name": name, "description": words, "inputSchema": schema});
            json!({"result": {"tools": WEB_TOOLS.map(tool)}})
        }
        "tools/call" => match params["name"].as_str().unwrap() {
            "fails" => json!({"result": {"content": text, "isError": true}}),
            "refuses" => json!({"error": {"code": -32602, "message": words, "data": words}}),
            "unauthorized" => {
                let header = [("www-authenticate", words.clone())];
                return (StatusCode::UNAUTHORIZED, header, words).into_response();
            }
            "typed" => {
                return ([("content-type", words.replace(' ', "+"))], words).into_response();
            }
            _ => json!({"result": {"content": text}}),
        },
        _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({"error": {"code": -32601, "message": words}}),
    };
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = request["id"].clone();
    if params["name"] == "stream" {
        let token = &params["_meta"]["progressToken"];
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1, "message": words}});
        let events = format!("data: {progress}\n\ndata: not JSON: {words}\n\ndata: {answer}\n\n");
        return ([("content-type", "text/event-stream")], events).into_response();
    }
    Json(answer).into_response()
}

/// Starts the service and the server, and returns their port.
async fn start() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = Router::new()
        .route("/tools/{tool}", any(service))
        .route("/mcp", post(server));
    tokio::spawn(async move { axum::serve(listener, app).await });
    port
}

/// The tables of everything, and the agent that has it.
fn config(port: u16) -> String {
    let auth = "auth = { bearer_env = \"HTTP_TOKEN\", headers_env = { x-api-key = \"HTTP_KEY\" } }";
    let tools = HTTP_TOOLS.map(|tool| {
        format!(
            "[tools.{tool}]\ndescription = \"For a test.\"\nurl = \"http://127.0.0.1:{port}/tools/{tool}\"\n{auth}\n"
        )
    });
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/production/canary/gossip.py");
    let command = ["/usr/bin/python3", &script.display().to_string()];
    let local = mcp::command("local", &command, "env_from = [\"GOSSIP_TOKEN\"]");
    let names = HTTP_TOOLS.map(|tool| format!("\"{tool}\"")).join(", ");
    format!(
        "[agents.talks]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [{names}, \"web__*\", \"local__*\"]\n\
         [egress]\nallow = [\"127.0.0.1:{port}\"]\n{}\n\
         [mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n\
         headers_env = {{ authorization = \"WEB_AUTHORIZATION\", x-api-key = \"WEB_KEY\" }}\n{local}",
        tools.concat()
    )
}

#[tokio::test]
async fn the_secrets_of_tools_stay_where_they_are() {
    let web = WEB_TOOLS.map(|tool| format!("web__{tool}"));
    let local = LOCAL_TOOLS.map(|tool| format!("local__{tool}"));
    let http = HTTP_TOOLS.map(str::to_owned);
    let all: Vec<_> = http.into_iter().chain(web).chain(local).collect();
    let calls = all.clone();
    // Each call has a turn of its own: a connection that one of them breaks has no other one on it.
    let model = Model::start(move |request: &Request| {
        let tool = calls.iter().find(|tool| **tool == request.last("user"));
        match request.results_since_user() {
            0 => Reply::text("I ask.").call(tool.unwrap(), &json!({})),
            _ => Reply::text("Done."),
        }
    })
    .await;
    let names = [
        "HTTP_TOKEN",
        "HTTP_KEY",
        "WEB_AUTHORIZATION",
        "WEB_KEY",
        "GOSSIP_TOKEN",
    ];
    let mut secrets: Vec<_> = names.iter().map(|name| Secret::new(name)).collect();
    let config = config(start().await);
    secrets[2].value = format!("Bearer {}", secrets[2].value);
    let watched = Watched::start(model, &secrets, |stack| stack.configure(&config)).await;
    secrets[2].value = secrets[2].value.trim_start_matches("Bearer ").to_owned();

    let client = watched.stack.client();
    let mut conversations = Vec::new();
    let mut said = 0;
    for tool in &all {
        let conversation = client.create_conversation(Some("talks")).await.unwrap();
        client.submit(&conversation, tool, None).await.unwrap();
        let events = watched.stack.ended(&conversation, 1).await;
        assert_eq!(count(&events, "complete"), 1, "{tool}: {events:#?}");
        let observed = data(&events, "observe")[0].to_string();
        said += usize::from(observed.contains(SAID));
        conversations.push(conversation);
    }
    // A redirect to elsewhere, a connection that was turned away, and bytes that are no text say nothing.
    assert!(said + 5 >= all.len(), "only {said} tools repeated anything");
    let requests = watched.stack.model.requests();
    let told = requests.iter().map(|request| request.body.to_string());
    let told: String = told.collect();
    assert!(
        told.contains(SAID),
        "descriptions and results go to the model"
    );
    for secret in &secrets {
        assert_without(secret, "what the model is told", &told);
    }
    let log = std::fs::read_to_string(watched.stack.path("worker.log")).unwrap();
    assert!(
        log.contains(&format!("{SAID} ***")),
        "the standard error of a server is logged"
    );
    watched.holds_none(&secrets, &conversations, SAID).await;
}
