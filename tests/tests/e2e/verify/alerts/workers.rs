//! Alerts on workers that have more to do than they can.

use everturn_tests::{
    model::{Model, Reply, Request},
    wait,
};
use futures::future::join_all;
use serde_json::json;

use super::watched::Watched;

/// The slots of the only worker.
const SLOTS: usize = 4;

/// Longer than a task may wait, as the alert has it.
const LONG_MS: u64 = 6_000;

/// Longer than the test takes.
const FOR_GOOD_MS: u64 = 600_000;

fn scripted(request: &Request) -> Reply {
    let said = request.last("user");
    let sleep_ms = match said.as_str() {
        "a long tool" => LONG_MS,
        "a tool for good" => FOR_GOOD_MS,
        _ => return Reply::text("Hello."),
    };
    match request.results_since_user() {
        0 => Reply::text("").call("test_read", &json!({"sleep_ms": sleep_ms, "effect": true})),
        _ => Reply::text("Done."),
    }
}

async fn with_few_slots() -> Watched {
    let tables = format!("[worker]\nmax_concurrent_activities = {SLOTS}\n");
    Watched::of(Model::start(scripted).await, &tables, 1).await
}

/// Has so many turns with a tool begin. Returns their conversations.
async fn turns_begin(watched: &Watched, said: &str, count: usize) -> Vec<String> {
    let asked = (0..count).map(|_| async { watched.stack.ask(said).await.0 });
    join_all(asked).await
}

/// Waits until so many tools have begun.
async fn tools_begin(watched: &Watched, count: usize) {
    wait::until(&format!("{count} tools have begun"), || async {
        (watched.stack.effects().len() >= count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn slots_are_in_use() {
    let mut watched = with_few_slots().await;
    watched.is_well().await;
    turns_begin(&watched, "a tool for good", SLOTS).await;
    tools_begin(&watched, SLOTS).await;
    watched.minutes(17).await;
    let fires = watched.only_fires(&["EverturnSlotsInUse"]).await;
    fires[0].has("task_queue", &watched.stack.task_queue);
}

#[tokio::test]
async fn tasks_wait_for_workers() {
    let mut watched = with_few_slots().await;
    watched.is_well().await;
    let conversations = turns_begin(&watched, "a long tool", 3 * SLOTS).await;
    // What comes second and third has waited for as long as the tools before it took.
    for round in 2..=3 {
        tools_begin(&watched, round * SLOTS).await;
        watched.minutes(7).await;
    }
    for conversation in conversations {
        watched.stack.ended(&conversation, 1).await;
    }
    watched.minutes(3).await;
    let fires = watched.only_fires(&["EverturnTasksWait"]).await;
    fires[0]
        .has("kind", "activity")
        .has("task_queue", &watched.stack.task_queue);
}
