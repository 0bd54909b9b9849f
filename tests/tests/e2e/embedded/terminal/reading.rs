//! The commands that read a conversation in the terminal: `everturn ls`, `tail` and `show`.

use std::{process::Stdio, time::Duration};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

/// Calls a tool, and then answers.
fn busy(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I look.").call("test_read", &json!({"sleep_ms": 300})),
        _ => Reply::text("Found."),
    }
}

/// A command that talks to the stack's gateway.
fn command(stack: &Stack, args: &[&str]) -> Command {
    stack.command(&[args, &["--url", &stack.url()]].concat(), &[])
}

/// What it prints on standard output; it must succeed.
async fn printed(stack: &Stack, args: &[&str]) -> String {
    let output = command(stack, args).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn ls_lists_conversations_and_finds_an_agents() {
    let stack = Stack::new(Model::start(busy).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Where is order 4711?").await;
    stack.ended(&conversation, 1).await;

    let listed = printed(&stack, &["ls"]).await;
    let line = listed.lines().find(|line| line.starts_with(&conversation));
    let line = line.unwrap_or_else(|| panic!("{listed}"));
    for shown in ["idle", "default", " s ago", "Where is order 4711?"] {
        assert!(line.contains(shown), "{listed}");
    }
    let json = printed(&stack, &["ls", "--json", "--search", "ORDER 4711"]).await;
    let found: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        found.iter().any(|found| found["id"] == *conversation),
        "{json}"
    );
    let nothing = printed(&stack, &["ls", "--agent", "nobody"]).await;
    assert_eq!(
        nothing, "",
        "a note on standard error says that nothing is found"
    );

    let one = command(&stack, &["ls", "-n", "1"]).output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&one.stdout).lines().count(), 2);
    let missing = command(&stack, &["tail", "no-such-conversation"]);
    let missing = { missing }.output().await.unwrap();
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    let once = said.matches("no-such-conversation").count();
    assert_eq!((missing.status.code(), once), (Some(1), 1), "{said}");
}

#[tokio::test]
async fn tail_prints_what_was_and_what_comes() {
    let stack = Stack::new(Model::start(busy).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    stack.ended(&conversation, 1).await;
    let events = stack.events(&conversation).await;

    let all = printed(&stack, &["tail", &conversation, "--no-follow"]).await;
    assert_eq!(all.lines().count(), events.len(), "{all}");
    assert!(all.contains("act                test_read"), "{all}");
    let args = ["tail", &conversation, "--no-follow", "--json", "-n", "2"];
    let two = printed(&stack, &args).await;
    let two: Vec<Value> = two
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<_> = two.iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["assistant_message", "complete"]);

    // One that follows has the next turn, too, and ends when it is told to. Its first line says that it has begun.
    let mut following = command(&stack, &["tail", &conversation, "-n", "1"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let first = timeout(Duration::from_mins(1), lines.next_line()).await;
    let first = first.unwrap().unwrap().unwrap();
    assert!(first.contains("complete"), "{first}");
    stack
        .client()
        .submit(&conversation, "again", None)
        .await
        .unwrap();
    let next_turn = async {
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let is_end = line.contains("complete");
            seen.push(line);
            if is_end {
                break;
            }
        }
        seen
    };
    let seen = timeout(Duration::from_mins(1), next_turn).await.unwrap();
    assert!(seen[0].contains("user_message       again"), "{seen:?}");
    let pid = nix::unistd::Pid::from_raw(following.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let status = timeout(Duration::from_secs(20), following.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn show_draws_the_turn_that_is_asked_for() {
    let stack = Stack::new(Model::start(busy).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("first").await;
    stack.ended(&conversation, 1).await;
    stack
        .client()
        .submit(&conversation, "second", None)
        .await
        .unwrap();
    stack.ended(&conversation, 2).await;

    let newest = printed(&stack, &["show", &conversation]).await;
    assert!(
        newest.contains("  complete ·") && newest.contains("2 LLM calls"),
        "{newest}"
    );
    assert!(
        newest.contains("“second”") && !newest.contains("“first”"),
        "{newest}"
    );
    let bars = newest
        .lines()
        .filter(|line| line.contains('█') || line.contains('▓'));
    let labels: Vec<_> = bars
        .map(|line| line.trim().split("  ").next().unwrap())
        .collect();
    assert_eq!(
        labels,
        ["LLM call 0", "test_read", "LLM call 1"],
        "{newest}"
    );
    let all = printed(&stack, &["show", &conversation, "--all", "--width", "80"]).await;
    assert!(all.contains("“first”") && all.contains("“second”"), "{all}");
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");

    for (args, said) in [
        (
            ["show", &conversation, "--turn", "msg_unknown"].as_slice(),
            "the turn is not among",
        ),
        (&["show", "unknown"], "conversation_not_found"),
        (&["tail", "unknown"], "conversation_not_found"),
    ] {
        let output = command(&stack, args).output().await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
}
