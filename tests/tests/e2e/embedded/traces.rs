//! Traces of turns, as a real collector gets them: each turn is one tree, and others are told of the span they are in.

use std::sync::{Arc, Mutex};

use axum::{Router, http::HeaderMap, routing::any};
use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::ids;
use everturn_terminal::frames::FollowedTurn;
use everturn_tests::{
    collector::{Collector, Span, tree},
    mcp::{self, EVERYTHING},
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::{Process, Stack},
    temporal::free_port,
    wait,
};
use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::embedded::mcp::{find, told};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// The span of the caller.
const CALLER: &str = "00f067aa0ba902b7";
const POST: &str = "POST /api/v1/agent/conversations/{id}/messages";

/// The environment of a process that exports.
fn exporting_to(endpoint: &str) -> [(&str, &str); 2] {
    // Spans are exported soon, so that tests need not wait.
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ]
}

/// Starts a gateway and a worker that export to a collector.
async fn exporting(stack: &Stack, collector: &Collector, more: &[(&str, &str)]) -> [Process; 2] {
    let endpoint = collector.endpoint();
    let environment = [&exporting_to(&endpoint), more].concat();
    let gateway = stack.gateway_with(&environment).await;
    [stack.worker_with(&environment), gateway]
}

/// Sends a message within the trace of a caller, and returns its conversation and its id.
async fn ask_within_trace(stack: &Stack, flags: &str) -> (String, String) {
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let url = stack.url();
    let url = format!("{url}/api/v1/agent/conversations/{conversation}/messages");
    let answer = reqwest::Client::new()
        .post(url)
        .header("traceparent", format!("00-{TRACE}-{CALLER}-{flags}"))
        .header("tracestate", "vendor=1")
        .json(&json!({"content": "go"}));
    let answer: Value = answer.send().await.unwrap().json().await.unwrap();
    (
        conversation,
        answer["message_id"].as_str().unwrap().to_owned(),
    )
}

/// Reads a conversation until its turn has ended. The last text is held back until this reader has all
/// that was before it.
async fn read_turn(stack: &Stack, conversation: &str, message: &str) {
    let mut turn = FollowedTurn::of(message);
    let mut frames = std::pin::pin!(stack.client().follow(conversation, 0));
    while let Some(frame) = frames.next().await {
        if frame.event == "observe" && frame.data["tool_name"] == "delegate" {
            stack.model.release();
        }
        if turn.ends_with(&frame) {
            return;
        }
    }
    panic!("the stream ended before the turn");
}

/// A service for HTTP tools, which notes the `traceparent` of each request.
async fn service() -> (u16, Arc<Mutex<Vec<String>>>) {
    let noted = Arc::<Mutex<Vec<String>>>::default();
    let notes = Arc::clone(&noted);
    let answer = move |headers: HeaderMap| {
        let header = |name: &str| headers.get(name).map_or("", |it| it.to_str().unwrap());
        let note = format!("{} {}", header("traceparent"), header("tracestate"));
        notes.lock().unwrap().push(note);
        async { "fine" }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(any(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, noted)
}

fn script(request: &Request) -> Reply {
    if request.last("system") == "helper" {
        return Reply::text("Helped.");
    }
    match request.results_since_user() {
        0 => Reply::text("I look.")
            .call("look", &json!({}))
            .call("every__echo", &json!({"message": "hello"})),
        2 => Reply::text("I share.").call("delegate", &json!({"agent": "helper", "task": "help"})),
        _ => Reply::text("Done.").held(),
    }
}

fn agent(port: u16, servers: &str) -> String {
    let helper = "[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"helper\"\n\
                  description = \"helps\"\n";
    let look = format!(
        "[tools.look]\ndescription = \"Looks.\"\neffect = \"read\"\nurl = \"http://127.0.0.1:{port}/\"\n"
    );
    format!(
        "tools = [\"look\", \"every__*\"]\ndelegates = [\"helper\"]\n[egress]\nallow = [\"127.0.0.1\"]\n{helper}{look}{servers}"
    )
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap()
}

#[tokio::test]
async fn a_turn_with_a_sub_agent_and_tools_is_one_tree() {
    let (collector, files) = (Collector::start().await, TempDir::new().unwrap());
    let (port, noted) = service().await;
    let servers = mcp::watched(
        "every",
        EVERYTHING,
        files.path(),
        "effects = {echo = \"read\"}",
    );
    let stack = Stack::with_agent(Model::start(script).await, &agent(port, &servers)).await;
    let _running = exporting(&stack, &collector, &[]).await;
    let (conversation, message) = ask_within_trace(&stack, "01").await;
    read_turn(&stack, &conversation, &message).await;
    let expected = [
        POST,
        "  invoke_agent default",
        "    deliver_turn",
        "    chat scripted",
        "    execute_tool every__echo",
        "    execute_tool look",
        "    chat scripted",
        "    invoke_agent helper",
        "      chat scripted",
        "    chat scripted",
    ];
    let spans = collector.trace(TRACE, &expected.map(str::trim)).await;
    // Both tools of the first step run at once, and the readers are served beside the agent.
    let mut lines = tree(&spans, CALLER);
    let mut expected = expected.map(str::to_owned);
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert!(spans.iter().all(|span| !span.is_failed), "{spans:#?}");
    // What others were told is the span of the call.
    let look = &named(&spans, "execute_tool look").id;
    assert_eq!(
        *noted.lock().unwrap(),
        [format!("00-{TRACE}-{look}-01 vendor=1")]
    );
    let echo = &named(&spans, "execute_tool every__echo").id;
    let call = told(files.path(), "every");
    let meta = &find(&call, "tools/call").unwrap()["params"]["_meta"];
    assert_eq!(meta["traceparent"], format!("00-{TRACE}-{echo}-01"));
    assert_eq!(meta["tracestate"], "vendor=1");
    described(&spans, &conversation);
}

/// Checks what the spans say.
fn described(spans: &[Span], conversation: &str) {
    let turn = named(spans, "invoke_agent default");
    let has = |span: &Span, key: &str, value: &str| {
        assert_eq!(span.attributes[key], value, "{key} of {}", span.name);
    };
    has(turn, "gen_ai.operation.name", "invoke_agent");
    has(turn, "gen_ai.conversation.id", conversation);
    has(turn, "everturn.llm_calls", "3");
    has(turn, "everturn.status", "completed");
    has(named(spans, POST), "everturn.tenant.id", "default");
    has(named(spans, POST), "http.response.status_code", "202");
    let chat = named(spans, "chat scripted");
    has(chat, "gen_ai.request.model", "scripted");
    assert_eq!(chat.events, ["first_delta"]);
    let look = named(spans, "execute_tool look");
    has(look, "gen_ai.tool.name", "look");
    has(look, "everturn.tool.status", "completed");
    let delivery = named(spans, "deliver_turn");
    has(delivery, "everturn.readers", "1");
    assert_eq!(delivery.events.last().unwrap(), "complete");
    assert_eq!(
        (named(spans, POST).service.as_str(), turn.service.as_str()),
        ("everturn-gateway", "everturn-worker")
    );
    // Without being asked, a trace has nobody's words.
    let texts = ["hello", "I look", "Done", "fine"];
    for value in spans.iter().flat_map(|span| span.attributes.values()) {
        assert!(!texts.iter().any(|text| value.contains(text)), "{value}");
    }
    let starts_in_turn = |span: &&Span| span.time.0 >= turn.time.0 && span.time.1 <= turn.time.1;
    let chats = spans.iter().filter(|span| span.name == "chat scripted");
    assert_eq!(chats.filter(starts_in_turn).count(), 4);
}

#[tokio::test]
async fn a_turn_that_another_worker_finishes_is_one_tree() {
    let collector = Collector::start().await;
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Done.").held()).await).await;
    let [worker, _gateway] = exporting(&stack, &collector, &[]).await;
    let (conversation, _) = ask_within_trace(&stack, "01").await;
    stack.asked(1).await;
    worker.kill().await;
    stack.model.release();
    let endpoint = collector.endpoint();
    let _worker = stack.worker_with(&exporting_to(&endpoint));
    stack.ended(&conversation, 1).await;
    // The call that the first worker had begun has no span, because nobody knows how it ended.
    let names = [POST, "invoke_agent default", "chat scripted"];
    let spans = collector.trace(TRACE, &names).await;
    assert_eq!(
        tree(&spans, CALLER),
        [POST, "  invoke_agent default", "    chat scripted"]
    );
}

#[tokio::test]
async fn turns_do_not_wait_for_a_collector_that_is_away() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Done.")).await).await;
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", nobody.as_str())];
    let gateway = stack.gateway_with(&environment).await;
    let worker = stack.worker_with(&environment);
    let (conversation, _) = stack.ask("go").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(worker.terminate().await, Some(0));
    assert_eq!(gateway.terminate().await, Some(0));
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_record_is_not_recorded() {
    let collector = Collector::start().await;
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Done.")).await).await;
    let _running = exporting(&stack, &collector, &[]).await;
    let (unrecorded, _) = ask_within_trace(&stack, "00").await;
    stack.ended(&unrecorded, 1).await;
    // A turn that nobody asked for over HTTP has a trace of its own, which shows that spans are exported.
    let input = json!({"conversation_id": "typed", "message": {"content": "go"}});
    stack.start_by_hand("typed", &input).await;
    stack.ended("typed", 1).await;
    let spans = wait::until("the typed turn is exported", || async {
        let spans = collector.spans();
        spans
            .iter()
            .any(|span| span.name == "invoke_agent default")
            .then_some(spans)
    })
    .await;
    assert!(
        spans.iter().all(|span| span.trace_id != TRACE),
        "{spans:#?}"
    );
    let turn = named(&spans, "invoke_agent default");
    let of_turn = spans.iter().filter(|span| span.trace_id == turn.trace_id);
    assert_eq!(
        tree(&of_turn.cloned().collect::<Vec<_>>(), ""),
        ["begin_turn", "  invoke_agent default", "    chat scripted"]
    );
}

#[tokio::test]
async fn the_worker_of_a_remote_tool_is_told_of_its_span() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I pay.").call("transfer", &json!({"amount": 5})),
        _ => Reply::text("Paid."),
    });
    let (collector, tools) = (
        Collector::start().await,
        PythonTools::new(model.await).await,
    );
    let stack = &tools.stack;
    let content = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
    let _running = exporting(stack, &collector, &content).await;
    let (conversation, _) = ask_within_trace(stack, "01").await;
    let _python = tools.worker_for(1).await;
    stack.ended(&conversation, 1).await;
    let expected = [
        "invoke_agent default",
        "execute_tool transfer",
        "chat scripted",
    ];
    let spans = collector.trace(TRACE, &expected).await;
    let transfer = named(&spans, "execute_tool transfer");
    assert_eq!(transfer.parent, named(&spans, "invoke_agent default").id);
    let arguments = &transfer.attributes["gen_ai.tool.call.arguments"];
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(arguments, json!({"amount": 5}));
    let chat = named(&spans, "chat scripted");
    assert!(chat.attributes["gen_ai.input.messages"].contains("go"));
    let workflow_id = ids::workflow_id(&conversation);
    let history = stack.temporal.history(&workflow_id).await;
    let scheduled = history["events"].as_array().unwrap().iter();
    let scheduled = scheduled.map(|event| &event["activityTaskScheduledEventAttributes"]);
    let remote = scheduled
        .into_iter()
        .find(|activity| activity["activityType"]["name"] == "transfer")
        .unwrap();
    let expected = format!("00-{TRACE}-{}-01", transfer.id);
    let told = |payload: &Value| {
        let data = STANDARD.decode(payload["data"].as_str().unwrap()).unwrap();
        serde_json::from_slice::<Value>(&data).unwrap()["traceparent"].clone()
    };
    assert_eq!(told(&remote["header"]["fields"]["_tracer-data"]), expected);
    assert_eq!(told(&remote["input"]["payloads"][0]), Value::Null);
}
