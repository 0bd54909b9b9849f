//! A worker replaces Temporal's SDK inside itself after so many activities, because the SDK forgets none. Nothing of a turn
//! notices it.

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

/// Each turn has some six activities, so a worker lives for two turns.
const OFTEN: &str = "[worker]\nrenew_after_activities = 12\ngraceful_shutdown = \"2s\"\n";

fn answer(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("wait", _) => Reply::text("This takes long").held(),
        (_, 0) => Reply::text("A tool.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Done."),
    }
}

/// How often a fresh worker of the SDK took over.
fn renewals(stack: &Stack) -> usize {
    let log = std::fs::read_to_string(stack.path("worker.log")).unwrap();
    log.matches("a fresh worker of the SDK takes over").count()
}

#[tokio::test]
async fn turns_go_on_while_the_sdk_is_replaced() {
    const TURNS: usize = 12;
    let stack = Stack::new(Model::start(answer).await).await;
    stack.configure(OFTEN);
    let (worker, _gateway) = stack.start().await;
    // This call is in flight while one worker of the SDK after the other is replaced.
    let (long, _) = stack.ask("wait").await;
    stack.asked(1).await;
    for _ in 0..TURNS {
        let (conversation, _) = stack.ask("use a tool").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete"
        );
    }
    wait::until("the SDK was replaced three times", || async {
        (renewals(&stack) >= 3).then_some(())
    })
    .await;
    stack.model.release();
    let events = stack.ended(&long, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.effects().len(), TURNS, "every tool ran once");
    assert_eq!(
        stack.model.requests().len(),
        1 + 2 * TURNS,
        "no call is paid twice"
    );
    assert_eq!(
        worker.terminate().await,
        Some(0),
        "nothing is left that waits"
    );
}

/// The graceful time counts for what a replaced worker of the SDK still runs, too.
#[tokio::test]
async fn a_worker_that_stops_cuts_what_a_replaced_one_still_runs() {
    let stack = Stack::new(Model::start(answer).await).await;
    stack.configure(OFTEN);
    let (worker, _gateway) = stack.start().await;
    let (long, _) = stack.ask("wait").await;
    stack.asked(1).await;
    while renewals(&stack) == 0 {
        let (conversation, _) = stack.ask("use a tool").await;
        stack.ended(&conversation, 1).await;
    }
    let asked = stack.model.requests().len();
    assert_eq!(worker.terminate().await, Some(0));
    let _next = stack.worker();
    stack.asked(asked + 1).await;
    stack.model.release();
    let events = stack.ended(&long, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "complete");
}
