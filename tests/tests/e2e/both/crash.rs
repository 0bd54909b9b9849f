//! kill -9 at the worst instants: the turn ends as if nothing had happened (invariant 3, idempotent saves; invariant 5,
//! paid once; invariant 6, done once; invariant 7, fenced deltas).

use std::time::{Duration, Instant};

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// Script of a model that calls one `once` tool with an effect, then answers.
fn one_effect(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Changed."),
    }
}

const WHOLE_TURN: &str = "user_message thought act observe assistant_message complete";

/// Kills the worker at a failpoint, lets another one finish, and returns the stack and the turn's events.
async fn killed_at(failpoint: &str, script: fn(&Request) -> Reply) -> (Stack, Vec<Value>) {
    let stack = Stack::new(Model::start(script).await).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at(failpoint);
    let (conversation, _) = stack.ask("change something").await;
    stack.reached(failpoint).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    (stack, events)
}

/// Never ends its first answer.
pub(crate) fn half_at_first(request: &Request) -> Reply {
    match request.number {
        1 => Reply::text("This half is lost with its wor").held(),
        _ => Reply::text("This is the whole answer."),
    }
}

#[tokio::test]
async fn while_the_model_streams() {
    let stack = Stack::new(Model::start(half_at_first).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    let _next = stack.worker();
    worker.kill().await;
    let killed = Instant::now();
    stack.asked(2).await;
    assert!(
        killed.elapsed() < Duration::from_secs(10),
        "taken over after {:?}",
        killed.elapsed()
    );
    println!("taken over after {:?}", killed.elapsed());
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(
        events[1]["event_data"]["content"],
        "This is the whole answer."
    );
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn after_the_answer_and_before_its_checkpoint() {
    let (stack, events) = killed_at("think.before_checkpoint", one_effect).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(
        stack.model.requests().len(),
        3,
        "this one call is paid again, the other is not"
    );
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn after_the_checkpoint_and_before_the_workflow_heard() {
    let (stack, events) = killed_at("think.after_checkpoint", one_effect).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(stack.model.requests().len(), 2, "no call is paid twice");
    assert_eq!(stack.effects().len(), 1);
}

/// Kills the worker inside the tool that the model's first step calls, and lets another worker end the turn.
async fn killed_inside_a_tool(
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Stack, Vec<Value>) {
    let stack = Stack::new(Model::start(script).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("use the tool").await;
    stack.had_effects(1).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    (stack, events)
}

#[tokio::test]
async fn inside_a_once_tool() {
    let script = |request: &Request| match request.results_since_user() {
        0 => {
            Reply::text("Slowly.").call("test_once", &json!({"effect": true, "sleep_ms": 600_000}))
        }
        _ => Reply::text("I do not know."),
    };
    let (stack, events) = killed_inside_a_tool(script).await;
    let observe = &events[3]["event_data"];
    assert_eq!(observe["is_error"], true);
    assert!(
        observe["result"]["error"]
            .as_str()
            .unwrap()
            .contains("may or may not"),
        "{observe}"
    );
    assert_eq!(stack.effects().len(), 1, "a once tool never runs twice");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn inside_a_tool_that_may_run_again() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("Read.").call("test_read", &json!({"effect": true, "sleep_ms": 2_000})),
        _ => Reply::text("Read it."),
    };
    let (stack, events) = killed_inside_a_tool(script).await;
    assert_eq!(events[3]["event_data"]["is_error"], false, "{events:#?}");
    assert_eq!(stack.effects().len(), 2);
}

#[tokio::test]
async fn after_the_tool_and_before_its_record() {
    let (stack, events) = killed_at("tool.before_record", one_effect).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(stack.effects().len(), 1, "a once tool never runs twice");
    assert_eq!(
        events[3]["event_data"]["is_error"], true,
        "its outcome is unknown"
    );
}

#[tokio::test]
async fn after_the_record_and_before_the_save() {
    let (stack, events) = killed_at("tool.after_record", one_effect).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(
        events[3]["event_data"]["is_error"], false,
        "what was recorded is what is observed"
    );
}

#[tokio::test]
async fn between_the_tools_end_and_the_save() {
    for failpoint in ["save.observe.before", "save.observe.after"] {
        let (stack, events) = killed_at(failpoint, one_effect).await;
        assert_eq!(types(&events), WHOLE_TURN, "{failpoint}");
        assert_eq!(
            (stack.effects().len(), stack.model.requests().len()),
            (1, 2),
            "{failpoint}"
        );
    }
}

#[tokio::test]
async fn around_the_other_saves() {
    for failpoint in [
        "save.thought.before",
        "save.thought.after",
        "save.end.before",
        "save.end.after",
    ] {
        let (stack, events) = killed_at(failpoint, one_effect).await;
        assert_eq!(types(&events), WHOLE_TURN, "{failpoint}");
        assert_eq!(
            (stack.effects().len(), stack.model.requests().len()),
            (1, 2),
            "{failpoint}"
        );
    }
}

#[tokio::test]
async fn a_gateway_between_storing_and_signalling_is_healed_by_repeating_the_post() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Here.")).await).await;
    let (_worker, gateway) = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    gateway.kill().await;
    let _next = stack.gateway().await;
    let first = stack
        .client()
        .submit(&conversation, "hello", Some("m1"))
        .await
        .unwrap();
    let again = stack
        .client()
        .submit(&conversation, "hello", Some("m1"))
        .await
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(stack.ended(&conversation, 1).await.len(), 3);
}

#[tokio::test]
async fn a_reset_in_mid_turn_pays_and_does_nothing_twice() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => one_effect(request),
        _ if request.number == 2 => Reply::text("This run is res").held(),
        _ => Reply::text("Changed."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("change something").await;
    stack.asked(2).await;
    stack.reset(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(events[4]["event_data"]["content"], "Changed.");
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(
        stack.model.requests().len(),
        3,
        "only the call that was in flight is paid again"
    );
    stack.workflow_status(&conversation, "COMPLETED").await;
}
