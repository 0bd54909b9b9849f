//! A server that dies: in the middle of a call, between two calls, and with its worker.

use std::path::Path;

use everturn_tests::{
    events::{error, result},
    wait,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    LONG, calling, kill, processes, running, slow, slow_stack, stack, times_told, was_told,
};

/// Kills the server while it runs the tool, and returns the turn's events and how often the tool was called.
async fn killed_in_mid_call(effect: &str) -> (Vec<Value>, usize) {
    let files = TempDir::new().unwrap();
    let calls = vec![(LONG, json!({"duration": 4, "steps": 1}))];
    let stack = slow_stack(calls, files.path(), effect, "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    was_told(files.path(), "tools/call").await;
    kill(&running(files.path(), "slow").await);
    let events = stack.ended(&conversation, 1).await;
    (events, times_told(files.path(), "tools/call"))
}

#[tokio::test]
async fn a_server_killed_in_mid_call_leaves_a_once_tool_unknown() {
    let (events, calls) = killed_in_mid_call("once").await;
    assert!(
        error(&events, LONG).contains("may or may not"),
        "{events:#?}"
    );
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_server_killed_in_mid_call_runs_a_read_tool_again() {
    let (events, calls) = killed_in_mid_call("read").await;
    assert!(
        result(&events, LONG)
            .as_str()
            .unwrap()
            .contains("completed"),
        "{events:#?}"
    );
    assert_eq!(calls, 2);
}

#[tokio::test]
async fn a_server_killed_between_calls_is_started_again() {
    let files = TempDir::new().unwrap();
    let calls = vec![("slow__echo", json!({"message": "here"}))];
    let stack = slow_stack(calls, files.path(), "once", "").await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker();
    for turn in 1..=3 {
        let (conversation, _) = stack.ask("go").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(result(&events, "slow__echo"), "Echo: here", "turn {turn}");
        kill(&running(files.path(), "slow").await);
    }
    assert!(processes(files.path(), "slow").len() >= 3);
    assert_eq!(worker.terminate().await, Some(0));
}

#[tokio::test]
async fn servers_end_with_their_worker_even_in_mid_call() {
    for is_killed in [false, true] {
        let files = TempDir::new().unwrap();
        let calls = vec![(LONG, json!({"duration": 600, "steps": 1}))];
        let tables = slow(files.path(), "once", "") + "[worker]\ngraceful_shutdown = \"1s\"\n";
        let stack = stack(calling(calls).await, "[\"slow__*\"]", &tables).await;
        let _gateway = stack.gateway().await;
        let worker = stack.worker();
        stack.ask("go").await;
        was_told(files.path(), "tools/call").await;
        if is_killed {
            worker.kill().await;
        } else {
            assert_eq!(worker.terminate().await, Some(0));
        }
        wait::until("the server is gone", || async {
            let runs = |pid: &String| Path::new("/proc").join(pid).exists();
            (!processes(files.path(), "slow").iter().any(runs)).then_some(())
        })
        .await;
    }
}
