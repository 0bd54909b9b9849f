//! Hooks after a turn whose conversation's workflow is lost between the end of the turn and the start of the hooks.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::Store;
use everturn_tests::{stack::Stack, wait};

use super::after;
use crate::embedded::reconciler::QUICK;

/// The end of the turn is stored, and the workflow has not started the hooks yet.
const BEFORE_START: &str = "save.end.after";

#[tokio::test]
async fn hooks_survive_a_workflow_that_was_terminated_before_their_start() {
    let stack = after::stack(after::KEEPS).await;
    stack.configure(QUICK);
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at(BEFORE_START);
    let (conversation, _) = stack.ask("hello").await;
    stack.reached(BEFORE_START).await;
    stack.terminate(&conversation).await;
    worker.kill().await;
    let _next = stack.worker();
    stack.ended(&conversation, 1).await;
    after::completed(&stack, &conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn hooks_survive_an_engine_that_comes_back_empty_before_their_start() {
    let mut stack = after::stack(after::KEEPS).await;
    let temporal = stack.move_to_own_temporal().await;
    stack.configure(QUICK);
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at(BEFORE_START);
    let (conversation, _) = stack.ask("hello").await;
    stack.reached(BEFORE_START).await;
    temporal.lose_everything().await;
    worker.kill().await;
    let _next = stack.worker();
    stack.ended(&conversation, 1).await;
    after::completed(&stack, &conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
}

/// Lets the hooks of a conversation wait for their workflow again, and waits until a gateway has looked at the hooks.
async fn looked_at_again(stack: &Stack, store: &Store, conversation: &str) {
    let wait_again = format!(
        "UPDATE agent_executions SET after_turn_due = finished_at WHERE conversation_id = '{conversation}'"
    );
    stack.run_sql(&wait_again, &wait_again).await;
    let now = Utc::now();
    wait::until("a gateway has looked at the hooks", || async move {
        (waiting(store, now).await == 0).then_some(())
    })
    .await;
}

/// The number of hooks that have waited for their workflow since `due_before`.
async fn waiting(store: &Store, due_before: DateTime<Utc>) -> usize {
    let due = store.reconciliation.due_hooks(due_before, 10);
    due.await.unwrap().len()
}

#[tokio::test]
async fn hooks_of_a_workflow_that_runs_or_has_ended_run_once() {
    let stack = after::stack(after::KEEPS).await;
    stack.configure(QUICK);
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "hello").await;
    stack.ended(&conversation, 1).await;
    stack.held(&conversation, 1).await;
    let store = stack.store().await;
    looked_at_again(&stack, &store, &conversation).await;
    let later = Utc::now() + TimeDelta::days(1);
    assert_eq!(waiting(&store, later).await, 1, "the workflow runs");
    stack.let_go(&conversation);
    after::completed(&stack, &conversation, 1).await;
    looked_at_again(&stack, &store, &conversation).await;
    wait::until("the gateway gives the hooks up", || async {
        (waiting(&store, later).await == 0).then_some(())
    })
    .await;
    after::completed(&stack, &conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
}
