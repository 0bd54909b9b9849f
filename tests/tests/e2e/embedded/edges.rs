//! Messages that come at the edge of a turn: as it ends, or before it goes on.

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

/// No reconciler brings back what a run forgets.
const UNHELPED: &str = "[reconciler]\ngrace = \"1h\"\n";

fn echo(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("slow", 0) => Reply::text("Slowly.").call("test_read", &json!({"sleep_ms": 1000})),
        ("two steps", 0) => Reply::text("First.").call("test_read", &json!({})),
        ("two steps", 1) => Reply::text("Then.").call("test_read", &json!({"sleep_ms": 600_000})),
        (said, _) => Reply::text(&format!("You said {said}.")),
    }
}

#[tokio::test]
async fn a_steer_that_comes_after_the_end_has_a_turn_of_its_own() {
    let stack = Stack::new(Model::start(echo).await).await;
    stack.configure(UNHELPED);
    let (_gateway, _worker) = (
        stack.gateway().await,
        stack.worker_stopping_at("save.steer.before"),
    );
    let (conversation, message) = stack.ask("slow").await;
    wait::until("the tool runs", || async {
        (stack.events(&conversation).await.len() >= 3).then_some(())
    })
    .await;
    for steer in ["one", "two"] {
        let body = json!({"content": steer, "on_busy": "steer"});
        assert_eq!(stack.send(&conversation, &body).await.0, 202);
    }
    stack.reached("save.steer.before").await;
    // Something else ends the turn while its run is about to save the steer.
    stack.fail_turn(&conversation, &message).await;
    stack.pass("save.steer.before");
    // The first steer begins the next turn, and the second one joins that.
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe error user_message user_message assistant_message complete"
    );
}

#[tokio::test]
async fn a_turn_that_goes_on_is_interrupted_and_not_lost() {
    let stack = Stack::new(Model::start(echo).await).await;
    stack.configure(UNHELPED);
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("two steps").await;
    wait::until("the second step's tool runs", || async {
        (stack.events(&conversation).await.len() >= 6).then_some(())
    })
    .await;
    stack.terminate(&conversation).await;
    worker.kill().await;
    let resumed = stack
        .post(&format!("/conversations/{conversation}/resume"), &json!({}))
        .await;
    assert_eq!(resumed.0, 202);
    let interrupt = json!({"content": "stop", "on_busy": "interrupt"});
    assert_eq!(stack.send(&conversation, &interrupt).await.0, 202);
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 2).await;
    let story = types(&events);
    assert!(
        story.ends_with("cancelled user_message assistant_message complete"),
        "{story}"
    );
}

/// The workflow of the first turn is gone, and nobody has noticed it.
#[tokio::test]
async fn a_message_to_a_lost_turn_brings_that_back_first() {
    for (on_busy, first) in [("queue", "complete"), ("interrupt", "cancelled")] {
        let model = Model::start(|request: &Request| match request.number {
            1 => Reply::text("As far as th").held(),
            _ => echo(request),
        });
        let stack = Stack::new(model.await).await;
        stack.configure(UNHELPED);
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("one").await;
        stack.asked(1).await;
        stack.terminate(&conversation).await;
        let rejected = json!({"content": "no", "on_busy": "reject"});
        assert_eq!(stack.send(&conversation, &rejected).await.0, 409);
        let second = json!({"content": "two", "on_busy": on_busy});
        assert_eq!(stack.send(&conversation, &second).await.0, 202);
        let events = stack.ended(&conversation, 2).await;
        let story = types(&events);
        let turns: Vec<_> = story.split("user_message ").skip(1).collect();
        assert!(
            turns[0].trim_end().ends_with(first),
            "{on_busy}: {events:#?}"
        );
        assert_eq!(turns[1], "assistant_message complete", "{on_busy}");
    }
}
