//! MCP servers behind a URL, which the worker does not start or end.

use std::process::Stdio;

use everturn_tests::{
    events::{error, observe, result},
    mcp::{self, EVERYTHING},
    ports::free_port,
    wait,
};
use serde_json::json;
use tokio::process::{Child, Command};

use super::{calling, progress, stack};

/// An MCP server behind a URL. It is killed when this is dropped.
fn over_http(port: u16) -> Child {
    Command::new("node")
        .arg(mcp::npm(EVERYTHING))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn listens(port: u16) {
    wait::until("the MCP server listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .ok()
            .map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_server_behind_a_url_may_be_restarted() {
    let port = free_port();
    let mut server = over_http(port);
    listens(port).await;
    let table = format!(
        "\n[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\nheaders_env = {{authorization = \"SCRIPTED_KEY\"}}\n"
    );
    let calls = vec![
        ("web__echo", json!({"message": "over HTTP"})),
        (
            "web__trigger-long-running-operation",
            json!({"duration": 1, "steps": 4}),
        ),
    ];
    let stack = stack(calling(calls).await, "[\"web__*\"]", &table).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(result(&events, "web__echo"), "Echo: over HTTP");
    assert!(
        result(&events, "web__trigger-long-running-operation")
            .as_str()
            .unwrap()
            .contains("completed")
    );

    server.kill().await.unwrap();
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    assert!(
        error(&events, "web__echo").contains("MCP server `web`"),
        "{events:#?}"
    );

    let _server = over_http(port);
    listens(port).await;
    wait::until("the server is used again", || async {
        let (conversation, _) = stack.ask("go").await;
        let events = stack.ended(&conversation, 1).await;
        (observe(&events, "web__echo")["is_error"] == false).then_some(())
    })
    .await;
}

/// A worker that has a session with the server, and makes no call while the server is restarted, does not notice the
/// restart.
#[tokio::test]
async fn a_server_behind_a_url_may_be_restarted_between_two_turns() {
    let port = free_port();
    let mut server = over_http(port);
    listens(port).await;
    let table = format!("\n[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    let calls = vec![("web__echo", json!({"message": "here"}))];
    let stack = stack(calling(calls).await, "[\"web__*\"]", &table).await;
    let _running = stack.start().await;
    // There are so many turns that every worker has had one.
    let turns = async || {
        for turn in 1..=6 {
            let (conversation, _) = stack.ask("go").await;
            let events = stack.ended(&conversation, 1).await;
            assert_eq!(result(&events, "web__echo"), "Echo: here", "turn {turn}");
        }
    };
    turns().await;
    server.kill().await.unwrap();
    let _server = over_http(port);
    listens(port).await;
    turns().await;
}

#[tokio::test]
async fn a_server_behind_a_url_that_dies_in_mid_call_leaves_the_outcome_unknown() {
    let port = free_port();
    let mut server = over_http(port);
    listens(port).await;
    let effects = "effects = {\"trigger-long-running-operation\" = \"once\"}";
    let table = format!("\n[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{effects}\n");
    let calls = vec![(
        "web__trigger-long-running-operation",
        json!({"duration": 600, "steps": 1200}),
    )];
    let stack = stack(calling(calls).await, "[\"web__*\"]", &table).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    progress(&stack, &conversation).await;
    server.kill().await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert!(
        error(&events, "web__trigger-long-running-operation").contains("may or may not"),
        "{events:#?}"
    );
}
