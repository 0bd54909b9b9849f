//! Requests that clients repeat, and signals that overtake each other. What is repeated becomes no history: a history has
//! limits (invariant 4, linear history).

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
};
use futures::future::join_all;
use serde_json::json;

use crate::embedded::approvals::{APPROVED_TURN, ASKING, answer, code, one_call, pending};

/// How often a client repeats what it asks for.
const TIMES: usize = 20;

const SIGNALED: &str = "WORKFLOW_EXECUTION_SIGNALED";

/// The next worker may get the call before it gets the cancel. A call that has ended by then is an answer that stays.
#[tokio::test]
async fn a_repeated_cancel_is_one_event_of_the_history() {
    let never_ends = |_: &Request| Reply::text("As far as this").held();
    let stack = Stack::new(Model::start(never_ends).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, message) = stack.ask("one").await;
    stack.asked(1).await;
    worker.kill().await;
    let path = format!("/conversations/{conversation}/cancel");
    for _ in 0..TIMES {
        let named = stack.post(&path, &json!({"message_id": message})).await;
        let unnamed = stack.post(&path, &json!({})).await;
        assert_eq!((named.0, unnamed.0), (202, 202));
    }
    // The message itself, and one cancel.
    stack.has_in_history(&conversation, SIGNALED, 2).await;
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "cancelled");
    stack.has_in_history(&conversation, SIGNALED, 2).await;
}

/// The turn takes a repeated answer once, and every request hears what became of it.
#[tokio::test]
async fn a_repeated_answer_is_one_event_of_the_history() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    worker.kill().await;
    let yes = || json!({"decision": "approve"});
    let answers = join_all((0..TIMES).map(|_| answer(&stack, &conversation, &call, yes())));
    let (answers, _worker) = tokio::join!(answers, async { stack.worker() });
    for answered in &answers {
        let is_known = code(answered) == (409, "approval_answered");
        assert!(answered.0 == 200 || is_known, "{answered:?}");
    }
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(stack.effects().len(), 1);
    stack
        .has_in_history(&conversation, "WORKFLOW_EXECUTION_UPDATE_ACCEPTED", 1)
        .await;
}
