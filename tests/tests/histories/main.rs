//! Stored histories replay (invariant 1, pure workflow): a worker of this version can go on with turns of every version
//! before.
//!
//! `make histories` records them anew from real turns; see `tests/histories/README.md`.

#![allow(clippy::unwrap_used)]

mod record;
mod record_answers;
mod record_approvals;
mod record_compaction;
mod record_hooks;
mod record_observed;
mod record_pools;

use std::{
    fs,
    path::{Path, PathBuf},
};

use everturn_workflows::{AfterTurn, AgentExecution};
use serde_json::Value;
use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("histories")
}

fn stored() -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (
            name,
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap(),
        )
    };
    files.into_iter().map(read).collect()
}

/// Replays a history as the SDK writes it.
async fn replay(history: &Value) -> Result<(), String> {
    let history = WorkflowHistory::from_json(history.to_string().as_bytes())
        .map_err(|error| error.to_string())?;
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<AgentExecution>()
        .unwrap()
        .register_workflow::<AfterTurn>()
        .unwrap()
        .build();
    let replayer = WorkflowReplayer::new(options).unwrap();
    replayer
        .replay_workflow(history)
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn stored_histories_replay() {
    let histories = stored();
    let names: Vec<_> = histories.iter().map(|(name, _)| name.as_str()).collect();
    let needed = [
        "plain",
        "parallel-tools",
        "cancel",
        "queued-messages",
        "retried-step",
        "cancel-waiting",
        "refused-save",
        "steers-after-end",
        "taken-over",
        "early-cancel",
        "announced-cancel",
        "young-run",
        "long-wait",
        "pools",
        "goes-on-among-tools",
        "mended-answer",
        "step-limit",
        "hooks",
        "after-turn",
    ];
    let of_tools = [
        "approval",
        "approval-cancelled",
        "stored-answers",
        "refused-answer",
        "client-tool",
        "remote-tools",
        "delegating",
        "sub-agent",
    ];
    for needed in needed.into_iter().chain(of_tools) {
        assert!(
            names.iter().any(|name| name.starts_with(needed)),
            "no stored history of {needed}"
        );
    }
    for (name, history) in &histories {
        replay(history).await.unwrap_or_else(|error| {
            panic!(
                "{name} does not replay: {error}\nSee CONTRIBUTING.md, \"Changing the workflow\"."
            )
        });
    }
}

/// The tests above would notice: with the same histories, but what the code asked for in another order.
#[tokio::test]
async fn another_order_of_activities_does_not_replay() {
    let (_, mut history) = stored()
        .into_iter()
        .find(|(name, _)| name.starts_with("parallel-tools"))
        .unwrap();
    let mut tools = scheduled(&mut history, "tool_execution_activity");
    assert_eq!(tools.len(), 2);
    let (first, second) = (
        tools[0]["activity_id"].take(),
        tools[1]["activity_id"].take(),
    );
    tools[0]["activity_id"] = second;
    tools[1]["activity_id"] = first;
    let error = replay(&history).await.unwrap_err();
    assert!(error.contains("nondeterministic"), "{error}");

    let (_, mut history) = stored()
        .into_iter()
        .find(|(name, _)| name.starts_with("plain"))
        .unwrap();
    scheduled(&mut history, "llm_thinking_activity")[0]["activity_type"]["name"] =
        "tool_execution_activity".into();
    let error = replay(&history).await.unwrap_err();
    assert!(error.contains("nondeterministic"), "{error}");
}

/// The attributes of the events that scheduled this activity.
fn scheduled<'a>(history: &'a mut Value, activity: &str) -> Vec<&'a mut Value> {
    let events = history["events"].as_array_mut().unwrap().iter_mut();
    let attributes = events
        .filter_map(|event| event["attributes"].get_mut("ActivityTaskScheduledEventAttributes"));
    attributes
        .filter(|attributes| attributes["activity_type"]["name"] == activity)
        .collect()
}
