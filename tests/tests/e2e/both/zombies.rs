//! Runs that were replaced while a worker of theirs stood still: what it does later changes nothing (invariant 11, one
//! run).

use everturn_tests::{
    events::{contents, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::json;

/// What has stalled for two seconds is looked at.
const QUICK: &str = "[reconciler]\nevery = \"500ms\"\ngrace = \"2s\"\nagain = \"2s\"\n";

fn answer(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I look.").call("test_read", &json!({})),
        _ => Reply::text(&format!("You said {}.", request.last("user"))),
    }
}

/// Lets the worker do what it was about to do, and waits until it has.
async fn wakes(stack: &Stack, zombie: Process, failpoint: &str) {
    stack.pass(failpoint);
    assert_eq!(zombie.terminate().await, Some(0));
}

#[tokio::test]
async fn a_late_begin_does_not_end_the_next_turn() {
    let stack = Stack::new(Model::start(answer).await).await;
    // With this policy a newer message does not bring back first what is lost.
    stack.configure(&format!("{QUICK}lost_turns = \"end\"\n"));
    let _gateway = stack.gateway().await;
    let zombie = stack.worker_stopping_and_holding("load.turn.before");
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.reached("load.turn.before").await;
    stack.terminate(&conversation).await;

    let _worker = stack.worker_holding(&[]);
    let (status, answer) = stack.send(&conversation, &json!({"content": "two"})).await;
    assert_eq!(status, 202, "{answer}");
    stack.held(&conversation, 1).await;
    wakes(&stack, zombie, "load.turn.before").await;
    let begun = types(&stack.events(&conversation).await);
    assert_eq!(begun, "user_message thought act");
    stack.let_go(&conversation);
    let events = stack.ended(&conversation, 2).await;
    let turn = "user_message thought act observe assistant_message complete";
    assert_eq!(types(&events), format!("{turn} {turn}"));
    assert_eq!(
        contents(&events, "assistant_message"),
        ["You said two.", "You said one."]
    );
    assert_eq!(stack.model.requests().len(), 4, "nothing was paid twice");
}

#[tokio::test]
async fn a_late_end_does_not_end_the_turn_that_was_resumed() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("This is as far as it c").held(),
        _ => answer(request),
    });
    let stack = Stack::new(model.await).await;
    let _gateway = stack.gateway().await;
    let zombie = stack.worker_stopping_and_holding("save.end.before");
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.asked(1).await;
    let path = format!("/conversations/{conversation}");
    // A cancel of the workflow is not noted at the message, so the resumed turn goes on.
    stack.cancel_workflow(&conversation).await;
    stack.reached("save.end.before").await;
    stack.terminate(&conversation).await;

    let _worker = stack.worker_holding(&[]);
    let resumed = stack.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!(resumed.0, 202, "{}", resumed.1);
    stack.held(&conversation, 1).await;
    wakes(&stack, zombie, "save.end.before").await;
    stack.let_go(&conversation);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
}
