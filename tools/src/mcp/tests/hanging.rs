//! Programs that hang, that start slowly, and that tell why they cannot start.

use std::time::Duration;

use everturn_proto::{Json, words::Effect};
use everturn_supervisor::launch::Launch;
use serde_json::{Value, json};

use super::{client_at, echo};
use crate::{
    mcp::{McpServer, ServerLocation, ServerOptions, ServerState},
    registry::ToolSource,
    testing::{context, egress},
};

/// A server as a program in the shell. `$0` is a file with a line for each start. The tool hangs for ever at its first call: the
/// program reads nothing more and does not end.
const STUCK: &str = r#"
echo start >>"$0"
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
    case $line in
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*)
        answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stuck","version":"1.2"},"instructions":"Echo twice."}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *ping*) answer '"result":{}' ;;
    *tools/call*)
        if [ "$(wc -l <"$0")" -le 2 ]; then
            if [ "$1" = slow ]; then continue; fi
            exec sleep 600
        fi
        answer '"result":{"content":[{"type":"text","text":"echo"}]}' ;;
    esac
done
"#;

fn program(script: &str, arguments: &[&str]) -> ServerLocation {
    let command = [&["/bin/sh", "-c", script], arguments].concat();
    ServerLocation::Command {
        command: command.into_iter().map(str::to_owned).collect(),
        directory: None,
        environment: Vec::new(),
        environment_files: Vec::new(),
        launch: Launch::unconfined(),
    }
}

/// Calls the tool, and gives the call up after a moment.
async fn give_up(client: &McpServer) {
    let tool = client.find("web__echo", context().asker()).await.unwrap();
    let run = tool.tool().run(context(), Json::of(&json!({})));
    let given_up = tokio::time::timeout(Duration::from_millis(300), run).await;
    assert!(given_up.is_err(), "{given_up:?}");
}

#[tokio::test]
async fn a_program_that_hangs_is_started_anew() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts").display().to_string();
    let client = client_at(program(STUCK, &[&file, "hangs"]), Effect::Once);
    give_up(&client).await;
    assert_eq!(echo_after_restart(&client).await, json!("echo"));
    let starts = std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(starts, 3, "one start to ask, and one a connection");
}

/// A call is lost as long as the hanging program is there.
async fn echo_after_restart(client: &McpServer) -> Value {
    match echo(client).await {
        Ok(answer) => answer,
        Err(_lost_with_the_program) => echo(client).await.unwrap(),
    }
}

#[tokio::test]
async fn a_program_that_works_on_another_call_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts").display().to_string();
    let client = client_at(program(STUCK, &[&file, "slow"]), Effect::Once);
    give_up(&client).await;
    give_up(&client).await;
    let starts = std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(starts, 2, "it answers pings");
}

/// The call has not reached the tool, so its time-out is no unknown outcome.
#[tokio::test]
async fn a_call_without_a_slot_says_that_it_waits() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts").display().to_string();
    let options = ServerOptions {
        max_concurrent_calls: 1,
        ..ServerOptions::new("web", program(STUCK, &[&file, "slow"]))
    };
    let client = McpServer::new(options, egress());
    let tool = client.find("web__echo", context().asker()).await.unwrap();
    let (first, second) = (context(), context());
    let (holds, waits) = (first.wait.clone(), second.wait.clone());
    let run = |context| tool.tool().run(context, Json::of(&json!({})));
    let both = async { tokio::join!(run(first), run(second)) };
    let given_up = tokio::time::timeout(Duration::from_millis(300), both).await;
    assert!(given_up.is_err());
    assert_eq!(holds.reason(), None);
    assert_eq!(waits.reason().as_deref(), Some("MCP server `web`"));
}

/// The program needs longer than the time limit. Each try gives the program more time, and meanwhile the model reads that the
/// tools are missing.
#[tokio::test]
async fn a_slow_start_ends_in_a_connection() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts").display().to_string();
    let script = format!("sleep 2\n{STUCK}");
    let options = ServerOptions {
        connect_timeout: Duration::from_millis(700),
        ..ServerOptions::new("web", program(&script, &[&file, "slow"]))
    };
    let client = McpServer::new(options, egress());
    assert!(client.tools(context().asker()).await.is_empty());
    let note = client.note(context().asker()).await.unwrap();
    assert!(note.contains("`web` are missing now"), "{note}");
    let started = async {
        while client.tools(context().asker()).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let started = tokio::time::timeout(Duration::from_mins(2), started).await;
    started.expect("the program starts at last");
    let note = client.note(context().asker()).await.unwrap();
    assert!(note.ends_with("Echo twice."), "{note}");
}

#[tokio::test]
async fn the_status_tells_why_a_program_does_not_start() {
    let script = "echo 'Traceback' >&2; echo 'ModuleNotFoundError: mcp' >&2; exit 1";
    let status = client_at(program(script, &[]), Effect::Once)
        .status("acme")
        .await;
    let ServerState::Unavailable { reason, output } = &status.state else {
        panic!("{status:?}")
    };
    assert!(reason.contains("ModuleNotFoundError: mcp"), "{reason}");
    assert_eq!(output[..], ["Traceback", "ModuleNotFoundError: mcp"]);
    assert_eq!(status.address, "/bin/sh");
}

#[tokio::test]
async fn the_status_tells_the_answer_of_a_url() {
    let server = axum::Router::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, server).await });
    let location = ServerLocation::Url {
        url: format!("http://user:hunter2@{address}/mcp?key=hunter2"),
        headers: Vec::new(),
        header_files: Vec::new(),
        oauth: None,
    };
    let status = client_at(location, Effect::Once).status("acme").await;
    let ServerState::Unavailable { reason, .. } = &status.state else {
        panic!("{status:?}")
    };
    assert!(reason.contains("404"), "{reason}");
    assert_eq!(status.address, format!("http://{address}/mcp"));
    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
}

#[tokio::test]
async fn the_status_of_a_connected_server_names_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts").display().to_string();
    let client = client_at(program(STUCK, &[&file, "slow"]), Effect::Once);
    let state = client.status("acme").await.state;
    let expected = ServerState::Connected {
        server: "stuck 1.2".to_owned(),
        protocol: "2025-06-18".to_owned(),
        tools: 1,
        has_instructions: true,
    };
    assert_eq!(state, expected);
}
