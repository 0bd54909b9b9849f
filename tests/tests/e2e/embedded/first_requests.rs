//! Runs the first `curl` commands of docs/api.md, as they are written there.

use std::{path::Path, process::Stdio, time::Duration};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// Time limit, far more than a turn of the scripted model takes.
const LIMIT: Duration = Duration::from_mins(3);

/// The address that the page shows.
const ADDRESS: &str = "localhost:8080";

fn commands() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (begin, _) = text.split_once("## Endpoints").unwrap();
    let commands = begin.lines().filter(|line| line.starts_with("curl "));
    commands.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_conversation_over_http_works_as_written() {
    let model = Model::start(|_: &Request| Reply::text("2 + 2 = 4.")).await;
    let stack = Stack::new(model).await;
    let _running = stack.start().await;
    let address = stack.url().replace("http://", "");
    // Other tests share the database, so this one has a conversation of its own.
    let conversation = format!("first-{}", uuid::Uuid::new_v4().simple());
    let commands = commands();
    assert_eq!(commands.len(), 3, "create, send and follow: {commands:?}");
    let mut seen = String::new();
    for command in commands {
        let mine = command
            .replace(ADDRESS, &address)
            .replace("hello", &conversation);
        let mut running = Command::new("sh")
            .args(["-c", &mine])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let read = async {
            // The last command follows the conversation and does not end by itself.
            while let Some(line) = lines.next_line().await.unwrap() {
                seen += &line;
                if line == "event: complete" {
                    break;
                }
            }
        };
        tokio::time::timeout(LIMIT, read).await.expect(&command);
    }
    for expected in [
        "\"agent\":\"default\"",
        "\"status\":\"queued\"",
        "event: user_message",
        "2 + 2 = 4.",
        "event: complete",
    ] {
        assert!(seen.contains(expected), "{expected} is missing in {seen}");
    }
}
