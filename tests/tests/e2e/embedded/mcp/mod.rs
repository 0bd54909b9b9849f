//! Tools of MCP servers of other projects, in whole turns, and what happens when a server misbehaves or dies.

mod killed;
pub(crate) mod oauth;
mod over_url;
mod questions;
mod real_servers;
mod reference;
mod refusals;
mod sdks;
mod tenants;

use std::{fs, path::Path};

use everturn_proto::ids;
use everturn_tests::{
    events::{data, error, observe, result, types},
    mcp::{self, EVERYTHING, FILESYSTEM},
    model::{Model, Reply, Request},
    stack::{self, Stack},
    wait,
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// Runs `everturn tools list`, and returns the names of the tools.
async fn listed(stack: &Stack) -> Vec<String> {
    let list = Command::new(stack::binary())
        .args(["tools", "list", "--json"])
        .current_dir(stack.directory())
        .env("SCRIPTED_KEY", "unused")
        .env_remove("EVERTURN_CONFIG")
        .output();
    let list = list.await.unwrap();
    let shown: Value = serde_json::from_slice(&list.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&list.stderr));
    });
    let tools = shown["tools"].as_array().unwrap().iter();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.map(name).collect()
}

/// Starts a model that makes these calls in the first step of a turn, then answers.
async fn calling<N>(calls: Vec<(N, Value)>) -> Model
where
    N: AsRef<str> + Send + Sync + 'static,
{
    Model::start(
        move |request: &Request| match request.results_since_user() {
            0 => calls
                .iter()
                .fold(Reply::text("I ask."), |reply, (tool, input)| {
                    reply.call(tool.as_ref(), input)
                }),
            _ => Reply::text("Done."),
        },
    )
    .await
}

/// Returns the names of the tools that a request offered to the model.
fn offered(request: &Request) -> Vec<String> {
    let tools = request.body["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the instructions of a request.
fn prompt(request: &Request) -> String {
    request.body["messages"][0]["content"].to_string()
}

async fn stack(model: Model, tools: &str, tables: &str) -> Stack {
    Stack::with_agent(model, &format!("tools = {tools}\n{tables}")).await
}

/// Runs a turn with the agent that has these tools and servers.
async fn turn(calls: Vec<(&'static str, Value)>, tools: &str, tables: &str) -> (Stack, Vec<Value>) {
    let stack = stack(calling(calls).await, tools, tables).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    (stack, events)
}

/// Returns the ids of the processes that ran as a watched server, in order.
fn processes(directory: &Path, server: &str) -> Vec<String> {
    let pids = fs::read_to_string(directory.join(format!("{server}.pid"))).unwrap_or_default();
    pids.lines().map(str::to_owned).collect()
}

/// Returns the process of a watched server that runs. A server that starts slowly has two processes for a moment.
async fn running(directory: &Path, server: &str) -> String {
    wait::until(&format!("one process of {server} runs"), || async {
        let mut running = processes(directory, server);
        running.retain(|pid| Path::new("/proc").join(pid).exists());
        match &running[..] {
            [only] => Some(only.clone()),
            _ => None,
        }
    })
    .await
}

pub(crate) fn kill(id: &str) {
    signal::kill(Pid::from_raw(id.parse().unwrap()), Signal::SIGKILL).unwrap();
}

/// Returns the messages that a watched server received.
pub(crate) fn told(directory: &Path, server: &str) -> Vec<Value> {
    let log = fs::read_to_string(directory.join(format!("{server}.log"))).unwrap_or_default();
    log.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

pub(crate) fn find<'a>(messages: &'a [Value], method: &str) -> Option<&'a Value> {
    messages.iter().find(|message| message["method"] == method)
}

/// Waits until a watched server has received a message with this method.
async fn was_told(directory: &Path, method: &str) -> Value {
    wait::until(&format!("the server hears {method}"), || async {
        find(&told(directory, "slow"), method).cloned()
    })
    .await
}

const LONG: &str = "slow__trigger-long-running-operation";

/// Returns the table of the watched server `slow`, whose long-running tool has this effect.
fn slow(directory: &Path, effect: &str, more: &str) -> String {
    let more = format!("effects = {{\"trigger-long-running-operation\" = \"{effect}\"}}\n{more}");
    mcp::watched("slow", EVERYTHING, directory, &more)
}

/// Makes a stack whose agent has the tools of the server `slow`, with a model that makes these calls.
async fn slow_stack(
    calls: Vec<(&'static str, Value)>,
    directory: &Path,
    effect: &str,
    more: &str,
) -> Stack {
    let tables = slow(directory, effect, more);
    stack(calling(calls).await, "[\"slow__*\"]", &tables).await
}

/// Returns how many messages with this method the server `slow` has received.
fn times_told(directory: &Path, method: &str) -> usize {
    let told = told(directory, "slow");
    let such = told.iter().filter(|message| message["method"] == method);
    such.count()
}

/// Waits until a heartbeat of the running tool carries its progress, and returns it.
async fn progress(stack: &Stack, conversation: &str) -> String {
    let workflow_id = ids::workflow_id(conversation);
    wait::until("a heartbeat carries the progress", || async {
        let described = stack.temporal.describe(&workflow_id).await;
        described["pendingActivities"][0]["heartbeatDetails"][0]
            .as_str()
            .map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn progress_keeps_a_long_call_alive() {
    let files = TempDir::new().unwrap();
    // The call takes longer than three times the time between two heartbeats, and each of its steps less than the idle time-out.
    let calls = vec![(LONG, json!({"duration": 32, "steps": 64}))];
    let stack = slow_stack(calls, files.path(), "once", "idle_timeout = \"3s\"").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let progress = progress(&stack, &conversation).await;
    assert!(progress.contains("/64"), "{progress}");
    let events = stack.ended(&conversation, 1).await;
    assert!(
        result(&events, LONG)
            .as_str()
            .unwrap()
            .contains("completed")
    );
    assert_eq!(times_told(files.path(), "tools/call"), 1);
}

/// The readers get the steps and the lines of a running tool, each at most once a second, and the store keeps neither.
#[tokio::test]
async fn readers_see_the_progress_and_the_log_of_a_running_tool() {
    let python = mcp::python("python").display().to_string();
    let server = mcp::command(
        "works",
        &[&python, &mcp::script("works.py")],
        "effects = {\"*\" = \"once\"}",
    );
    let tool = "works__work";
    let stack = stack(
        calling(vec![(tool, json!({}))]).await,
        "[\"works__*\"]",
        &server,
    )
    .await;
    let _all = stack.all_in_one().await;
    let (conversation, frames) = stack.frames_of_turn("go").await;
    let events = stack.events(&conversation).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
    assert_eq!(result(&events, tool), "done");
    let reports: Vec<_> = frames
        .iter()
        .filter(|frame| frame.event == "tool_progress")
        .collect();
    assert!(reports.iter().all(|frame| frame.id.is_none()));
    let execution = &data(&events, "act")[0]["execution_id"];
    assert!(
        reports.iter().all(
            |frame| frame.data["execution_id"] == *execution && frame.data["tool_name"] == tool
        )
    );
    let (lines, steps): (Vec<_>, Vec<_>) = reports
        .iter()
        .map(|frame| &frame.data)
        .partition(|data| data.get("level").is_some());
    // The server reports fifty steps a second for three seconds.
    assert!((2..=5).contains(&steps.len()), "{steps:#?}");
    let last = steps.last().unwrap();
    assert!(last["progress"].is_u64() && last["total"] == 150, "{last}");
    assert!(
        last["message"].as_str().unwrap().starts_with("step "),
        "{last}"
    );
    assert_eq!(lines[0]["level"], "info");
    assert!(
        lines[0]["message"].as_str().unwrap().contains("begins"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_silent_call_is_given_up_and_the_server_told() {
    let files = TempDir::new().unwrap();
    let calls = vec![(LONG, json!({"duration": 600, "steps": 1}))];
    let tables = slow(files.path(), "once", "idle_timeout = \"2s\"");
    let (_stack, events) = turn(calls, "[\"slow__*\"]", &tables).await;
    let error = error(&events, LONG);
    assert!(
        error.contains("sign of progress for 2 s") && error.contains("may or may not"),
        "{error}"
    );
    was_told(files.path(), "notifications/cancelled").await;
}

#[tokio::test]
async fn a_cancelled_turn_cancels_the_call_at_the_server() {
    let files = TempDir::new().unwrap();
    let calls = vec![(LONG, json!({"duration": 600, "steps": 1}))];
    let stack = slow_stack(calls, files.path(), "once", "").await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("go").await;
    let call = was_told(files.path(), "tools/call").await;
    let (status, _) = stack
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    assert_eq!(status, 202);
    let cancelled = was_told(files.path(), "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "cancelled");

    let observe = observe(&events, LONG);
    let (execution, meta) = (
        observe["execution_id"].as_str().unwrap(),
        &call["params"]["_meta"],
    );
    assert_eq!(meta["everturn/conversation_id"], conversation);
    assert_eq!(meta["everturn/execution_id"], execution);
    assert_eq!(meta["everturn/tool_call_id"], observe["call_id"]);
    assert_eq!(
        meta["everturn/idempotency_key"],
        ids::idempotency_key(&conversation, &message, execution)
    );
}

#[tokio::test]
async fn a_server_that_is_away_fails_no_turn() {
    let tables = [
        mcp::command("missing", &["/no/such/program"], ""),
        mcp::command("mute", &["sleep", "600"], "connect_timeout = \"1s\""),
        mcp::command("ended", &["true"], ""),
    ];
    let calls = vec![
        ("missing__tool", json!({})),
        ("calculate", json!({"expression": "6 * 7"})),
    ];
    let (stack, events) = turn(
        calls,
        "[\"calculate\", \"missing__*\", \"mute__*\", \"ended__*\"]",
        &tables.concat(),
    )
    .await;
    assert_eq!(
        offered(&stack.model.requests()[0]),
        ["calculate"],
        "the tools of servers that are away are not offered"
    );
    let prompt = prompt(&stack.model.requests()[0]);
    for server in ["missing", "mute", "ended"] {
        let expected = format!("The tools of the server `{server}` are missing now");
        assert!(prompt.contains(&expected), "{prompt}");
    }
    assert!(
        error(&events, "missing__tool").contains("MCP server `missing` is not available"),
        "{events:#?}"
    );
    assert_eq!(result(&events, "calculate")["value"], "42");
    assert_eq!(events.last().unwrap()["event_type"], "complete");
}

/// The server takes longer to start than the 10 s for which rmcp waits for the answer to its first question, like a
/// server that `npx` has to download first.
#[tokio::test]
async fn a_server_that_is_slow_to_start_is_waited_for() {
    let slowly = |name: &str, run: &str| {
        let run = format!("sleep 12; exec {run}");
        // On a busy machine, it takes even longer.
        mcp::command(name, &["sh", "-c", &run], "connect_timeout = \"2m\"")
    };
    let old = slowly("old", &format!("node {}", mcp::npm(EVERYTHING).display()));
    let new = slowly("new", &mcp::python("mcp-server-time").display().to_string());
    let calls = vec![
        ("old__echo", json!({"message": "late"})),
        ("new__get_current_time", json!({"timezone": "UTC"})),
    ];
    let (_stack, events) = turn(calls, "[\"old__*\", \"new__*\"]", &(old + &new)).await;
    assert_eq!(result(&events, "old__echo"), "Echo: late");
    assert!(
        result(&events, "new__get_current_time")
            .to_string()
            .contains("UTC")
    );
}

#[tokio::test]
async fn a_result_too_large_or_not_text_is_a_clear_observe() {
    let files = TempDir::new().unwrap();
    let root = files.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name).display().to_string();
    fs::write(root.join("huge"), "x".repeat(64 * 1024 * 1024)).unwrap();
    fs::write(root.join("large"), "y".repeat(100 * 1024)).unwrap();
    fs::write(root.join("nul"), "a\0b").unwrap();
    fs::write(root.join("latin1"), b"caf\xe9").unwrap();
    let server = mcp::npm(FILESYSTEM).display().to_string();
    let table = mcp::command("files", &["node", &server, &root.display().to_string()], "");
    let read = |name: &str| ("files__read_file", json!({"path": at(name)}));
    for (name, expected) in [
        ("huge", "more than 4194304 bytes"),
        ("large", "\"truncated\":true"),
        ("nul", "\"encoding\":\"base64\""),
        ("latin1", "caf\u{FFFD}"),
    ] {
        let (_stack, events) = turn(vec![read(name)], "[\"files__*\"]", &table).await;
        let observe = observe(&events, "files__read_file");
        assert!(
            observe["result"].to_string().contains(expected),
            "{name}: {observe}"
        );
        assert_eq!(events.last().unwrap()["event_type"], "complete", "{name}");
    }
}

/// The worker starts without the server that lacks a variable, and the model reads the instructions of the other server.
#[tokio::test]
async fn a_model_reads_instructions_and_a_missing_variable_stops_nothing() {
    let table = |name: &str, more: &str| {
        let server = mcp::npm(EVERYTHING).display().to_string();
        mcp::command(name, &["node", &server], more)
    };
    let tables = table("told", "")
        + &table("quiet", "instructions = false")
        + &table("lacks", "env_from = [\"NOT_SET_ANYWHERE\"]");
    let calls = vec![("told__echo", json!({"message": "here"}))];
    let tools = "[\"told__*\", \"quiet__*\", \"lacks__*\"]";
    let (stack, events) = turn(calls, tools, &tables).await;
    assert_eq!(result(&events, "told__echo"), "Echo: here");
    let requests = stack.model.requests();
    let prompt = prompt(&requests[0]);
    assert!(
        prompt.starts_with("\"Do as scripted.")
            && prompt.contains("The server of the tools `told__*` says"),
        "{prompt}"
    );
    assert!(
        !prompt.contains("`quiet__*`") && prompt.contains("`lacks` are missing now"),
        "{prompt}"
    );
    assert!(offered(&requests[0]).contains(&"quiet__echo".to_owned()));
    stack.logged("worker", "NOT_SET_ANYWHERE").await;
}

#[tokio::test]
async fn a_changed_list_is_offered_in_the_next_call() {
    let files = TempDir::new().unwrap();
    let calls = vec![("slow__echo", json!({"message": "here"}))];
    let stack = slow_stack(calls, files.path(), "once", "").await;
    let _running = stack.start().await;
    // This server adds tools after the handshake, and notifies its client of them.
    wait::until("the tools that came later are offered", || async {
        let (conversation, _) = stack.ask("go").await;
        stack.ended(&conversation, 1).await;
        let tools = offered(stack.model.requests().last().unwrap());
        tools
            .contains(&"slow__simulate-research-query".to_owned())
            .then_some(())
    })
    .await;
    wait::until("the list was asked for again", || async {
        (times_told(files.path(), "tools/list") >= 2).then_some(())
    })
    .await;
}
