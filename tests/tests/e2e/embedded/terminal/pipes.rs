//! `everturn chat` without a terminal: lines, JSON, and exit codes.

use std::{process::Stdio, time::Duration};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

fn script(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("fail", _) => Reply::error(400, "invalid_request"),
        ("hold", _) => Reply::text("Half").held(),
        ("tool", 0) => Reply::text("I look.").call("test_read", &json!({"sleep_ms": 1})),
        (said, _) => Reply::text(&format!("You said **{said}**.")),
    }
}

fn chat(stack: &Stack, args: &[&str]) -> Command {
    let url = stack.url();
    let mut command = stack.command(&[&["chat", "--url", &url], args].concat(), &[]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
}

#[tokio::test]
async fn the_exit_code_says_how_the_turn_ended() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    for (args, code, said) in [
        (
            ["hello"].as_slice(),
            0,
            "You said **hello**.\n✓ done · 1 step",
        ),
        (&["tool"], 0, "I look.\n✓ test_read {\"sleep_ms\":1}"),
        (&["fail"], 1, "✗ failed: llm_bad_request"),
        (&["--history", "many"], 2, ""),
        (&["--tool", "open_file"], 2, ""),
    ] {
        let output = chat(&stack, args).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
        assert!(!text.contains('\u{1b}'), "{args:?}: {text:?}");
    }

    let child = chat(&stack, &["hold"]).spawn().unwrap();
    stack.asked(5).await;
    interrupt(&child);
    let output = timeout(Duration::from_mins(1), child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.code() == Some(3) && text.contains("■ cancelled"),
        "{text}"
    );
}

#[tokio::test]
async fn a_person_reads_why_the_turn_waits() {
    let model = Model::start(|request: &Request| match request.number {
        1..=2 => Reply::error(529, "overloaded_error").header("retry-after-ms", "1500"),
        _ => Reply::text("At last."),
    });
    let stack = Stack::embedded(model.await).await;
    let _all = stack.all_in_one().await;
    let output = chat(&stack, &["hello"]).output().await.unwrap();
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let note = "The provider is overloaded; next try in 2 s (attempt ";
    assert!(notes.contains(note), "{notes}");
    assert_eq!(output.status.code(), Some(0), "{notes}");
}

#[tokio::test]
async fn each_line_of_a_pipe_is_a_message() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let mut child = chat(&stack, &[]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all("one\n\n/quit\n你好\n".as_bytes())
        .await
        .unwrap();
    drop(stdin);
    let output = timeout(Duration::from_mins(2), child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("You said"))
        .collect();
    assert_eq!(
        said,
        [
            "You said **one**.",
            "You said **/quit**.",
            "You said **你好**."
        ]
    );
    assert!(output.status.success() && !text.contains("you>"), "{text}");
}

#[tokio::test]
async fn json_has_the_events_of_the_turn_as_they_come() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("before").await;
    stack.ended(&conversation, 1).await;
    let args = ["--json", "--conversation", &conversation, "tool"];
    let output = chat(&stack, &args).output().await.unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<_> = lines
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "user_message",
            "thought",
            "act",
            "observe",
            "assistant_message",
            "complete"
        ]
    );

    // They come while the turn runs.
    let args = ["--json", "--conversation", &conversation, "hold"];
    let mut child = chat(&stack, &args).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = timeout(Duration::from_mins(1), lines.next_line()).await;
    let first: Value = serde_json::from_str(&first.unwrap().unwrap().unwrap()).unwrap();
    assert_eq!(first["type"], "user_message");
    stack.model.release();
    let status = timeout(Duration::from_mins(1), child.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(0));
}
