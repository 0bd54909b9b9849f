//! A cancel reaches a running call at once, and not with its next heartbeat: the workflow announces it on the stream, and
//! the worker asks the engine. In these tests a worker sends no heartbeat, because it stops before the first one. A call
//! whose heartbeat is late ends in the history as timed out, and not as cancelled.

use std::future::ready;

use everturn_proto::ids;
use everturn_stream::{CancelNews, RedisStream, RedisStreamOptions};
use everturn_tests::{
    events::{count, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// Where a worker stops before it sends a heartbeat.
const HEARTBEAT: &str = "attempt.heartbeat";

/// A reply that does not end.
fn endless() -> Reply {
    Reply::text("As far as this").held()
}

/// Does not end its reply, when it is asked for the first time.
fn first_is_endless(request: &Request) -> Reply {
    match request.number {
        1 => endless(),
        _ => Reply::text("Done."),
    }
}

/// Waits until so many replies of the model have nobody who reads them, because their connections are closed.
async fn abandoned(stack: &Stack, count: usize) {
    wait::until(&format!("{count} connections are closed"), || {
        ready((stack.model.abandoned() == count).then_some(()))
    })
    .await;
}

/// Returns how the activities of a run have ended that did not complete.
fn ends(history: &Value) -> Vec<&str> {
    let events = history["events"].as_array().unwrap();
    let kinds = events.iter().map(|event| {
        let kind = event["eventType"].as_str().unwrap();
        kind.trim_start_matches("EVENT_TYPE_")
    });
    let ends = ["CANCELED", "TIMED_OUT", "FAILED"].map(|end| format!("ACTIVITY_TASK_{end}"));
    kinds
        .filter(|kind| ends.iter().any(|end| end == kind))
        .collect()
}

/// Cancels the turn of a conversation this way.
async fn cancel_by(way: &str, stack: &Stack, conversation: &str) {
    match way {
        "API" => stack.client().cancel(conversation).await.unwrap(),
        "CLI" => stack.cancel_workflow(conversation).await,
        "interrupt" => {
            let message = json!({"content": "now", "on_busy": "interrupt"});
            assert_eq!(stack.send(conversation, &message).await.0, 202);
        }
        other => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn a_cancel_closes_the_providers_connection_without_a_heartbeat() {
    for way in ["API", "CLI", "interrupt"] {
        let stack = Stack::new(Model::start(first_is_endless).await).await;
        let _gateway = stack.gateway().await;
        let _worker = stack.worker_stopping_at(HEARTBEAT);
        let (conversation, _) = stack.ask("speak").await;
        stack.asked(1).await;
        let run_id = stack.run_id(&conversation).await;
        cancel_by(way, &stack, &conversation).await;
        abandoned(&stack, 1).await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(count(&events, "cancelled"), 1, "{way}: {events:#?}");
        let history = stack.temporal.history_of_run(&conversation, &run_id).await;
        assert_eq!(ends(&history), ["ACTIVITY_TASK_CANCELED"], "{way}");
    }
}

#[tokio::test]
async fn a_deletion_closes_the_providers_connection_without_a_heartbeat() {
    let stack = Stack::new(Model::start(first_is_endless).await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_stopping_at(HEARTBEAT);
    let (conversation, _) = stack.ask("speak").await;
    stack.asked(1).await;
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    let deleted = stack.http.delete(url).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    abandoned(&stack, 1).await;
}

#[tokio::test]
async fn a_cancel_stops_a_tool_without_a_heartbeat() {
    let model = Model::start(|_: &Request| {
        let input = json!({"effect": true, "sleep_ms": 600_000});
        Reply::text("Slowly.").call("test_once", &input)
    });
    let stack = Stack::new(model.await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_stopping_at(HEARTBEAT);
    let (conversation, _) = stack.ask("work").await;
    stack.had_effects(1).await;
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message thought act observe cancelled");
    let history = stack
        .temporal
        .history(&ids::workflow_id(&conversation))
        .await;
    assert_eq!(ends(&history), ["ACTIVITY_TASK_CANCELED"]);
}

#[tokio::test]
async fn a_cancel_reaches_a_sub_agent_without_a_heartbeat() {
    let model = Model::start(|request: &Request| match request.last("system").as_str() {
        "helper" => endless(),
        _ => Reply::text("Help me.").call("delegate", &json!({"agent": "helper", "task": "speak"})),
    });
    let agents = "delegates = [\"helper\"]\n[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
                  instructions = \"helper\"";
    let stack = Stack::with_agent(model.await, agents).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_stopping_at(HEARTBEAT);
    let (conversation, _) = stack.ask("share").await;
    stack.asked(2).await;
    stack.client().cancel(&conversation).await.unwrap();
    abandoned(&stack, 1).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "cancelled"), 2, "{events:#?}");
    let start = data(&events, "sub_agent_start")[0]["execution_id"].as_str();
    let workflow_id = ids::sub_agent_workflow_id(&conversation, start.unwrap());
    let history = stack.temporal.history(&workflow_id).await;
    assert_eq!(ends(&history), ["ACTIVITY_TASK_CANCELED"]);
}

#[tokio::test]
async fn a_cancel_leaves_other_conversations_alone() {
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "speak" => endless(),
        _ => Reply::text("The whole answer.").held(),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (other, _) = stack.ask("answer").await;
    let (cancelled, _) = stack.ask("speak").await;
    stack.asked(2).await;
    stack.client().cancel(&cancelled).await.unwrap();
    stack.ended(&cancelled, 1).await;
    stack.model.release();
    let events = stack.ended(&other, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 2);
    assert_eq!(stack.model.abandoned(), 1);
}

/// An announcement for which no cancel follows: of another installation on the same Redis, or of a worker that was taken
/// for dead.
#[tokio::test]
async fn what_the_engine_does_not_confirm_stops_nothing() {
    let model = Model::start(|_: &Request| Reply::text("The whole answer.").held());
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("answer").await;
    stack.asked(1).await;
    let options = RedisStreamOptions::default();
    let stream = RedisStream::connect(&stack.redis().url(), options).unwrap();
    let agent_execution = ids::root_agent_execution_id(&conversation, &message);
    stream.announce_cancel(&agent_execution).await.unwrap();
    stack
        .logged("worker", "that the engine does not confirm")
        .await;
    stack.model.release();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 1);
}

/// The announcement is lost, and the next heartbeat brings the cancel.
#[tokio::test]
async fn a_cancel_needs_no_redis() {
    let stack = Stack::breakable(Model::start(first_is_endless).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("speak").await;
    stack.asked(1).await;
    stack.redis().kill().await;
    stack.client().cancel(&conversation).await.unwrap();
    abandoned(&stack, 1).await;
    let events = stack.ended(&conversation, 1).await;
    let story = types(&events);
    assert_eq!(story, "user_message assistant_message cancelled");
    assert_eq!(events[1]["event_data"]["partial"], true);
    stack.redis().start_again().await;
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
}
