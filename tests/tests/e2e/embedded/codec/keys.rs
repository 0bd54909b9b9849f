//! Keys come and go while turns run, and so do workers.

use everturn_proto::ids;
use everturn_tests::{events::types, model::Model, stack::Stack};
use serde_json::json;

use super::{KEYS, TABLE, key, key_ids, start};
use crate::embedded::approvals::{APPROVED_TURN, ASKING, answer, one_call, pending};

/// Begins a turn that waits for an approval.
pub(super) async fn waiting(stack: &Stack) -> String {
    let (conversation, _) = stack.ask("do it").await;
    pending(stack, &conversation, 1).await;
    conversation
}

/// Answers the approval, and waits for the end of the turn.
pub(super) async fn approved(stack: &Stack, conversation: &str) {
    let call = pending(stack, conversation, 1).await.remove(0);
    let (status, body) = answer(stack, conversation, &call, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{body}");
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
}

pub(super) async fn asking() -> Stack {
    Stack::with_agent(Model::start(one_call).await, ASKING).await
}

#[tokio::test]
async fn a_rotation_in_mid_turn_loses_nothing() {
    let stack = asking().await;
    stack.configure(TABLE);
    let (old, new) = (key("old"), key("new"));
    let running = start(&stack, &old).await;
    let conversation = waiting(&stack).await;
    drop(running);
    // First every process gets the new key, then it becomes the active one.
    drop(start(&stack, &format!("{old}\n{new}")).await);
    let running = start(&stack, &format!("{new}\n{old}")).await;
    approved(&stack, &conversation).await;
    let history = stack
        .temporal
        .history(&ids::workflow_id(&conversation))
        .await;
    let ids = key_ids(&history);
    for id in ["old", "new"] {
        assert!(ids.iter().any(|found| found == id), "{id} is in {ids:?}");
    }
    drop(running);
    // What the old key has encrypted has ended: it may go.
    let _running = start(&stack, &new).await;
    let next = waiting(&stack).await;
    approved(&stack, &next).await;
}

#[tokio::test]
async fn a_turn_begun_without_the_codec_ends_with_it() {
    let stack = asking().await;
    let running = stack.start().await;
    let conversation = waiting(&stack).await;
    drop(running);
    stack.configure(TABLE);
    let _running = start(&stack, &key("first")).await;
    approved(&stack, &conversation).await;
    let history = stack
        .temporal
        .history(&ids::workflow_id(&conversation))
        .await;
    assert!(!key_ids(&history).is_empty());
}

#[tokio::test]
async fn a_worker_without_the_key_loses_no_turn() {
    let stack = asking().await;
    stack.configure(TABLE);
    let (right, wrong) = (key("right"), key("wrong"));
    let _gateway = stack.gateway_with(&[(KEYS, &right)]).await;
    let worker = stack.worker_with(&[(KEYS, &wrong)]);
    let (conversation, _) = stack.ask("do it").await;
    stack.logged("worker", "has no key `right`").await;
    worker.kill().await;
    let _worker = stack.worker_with(&[(KEYS, &right)]);
    approved(&stack, &conversation).await;
}

#[tokio::test]
async fn a_killed_worker_loses_no_turn() {
    let stack = asking().await;
    stack.configure(TABLE);
    let ring = key("only");
    let (worker, _gateway) = start(&stack, &ring).await;
    let conversation = waiting(&stack).await;
    worker.kill().await;
    let _worker = stack.worker_with(&[(KEYS, &ring)]);
    approved(&stack, &conversation).await;
}

#[tokio::test]
async fn wrong_keys_are_told_before_anything_is_connected() {
    let stack = asking().await;
    stack.configure(TABLE);
    let said = stack.refused(&["gateway"], &[]).await;
    assert!(
        said.contains("EVERTURN_CODEC_KEYS") && said.contains("not set"),
        "{said}"
    );
    let said = stack.refused(&["gateway"], &[(KEYS, "a:c2VjcmV0")]).await;
    assert!(
        said.contains("line 1 of the ring") && !said.contains("c2VjcmV0"),
        "{said}"
    );
    let ring = format!("{}\n{}", key("new"), key("old"));
    let checked = stack
        .command(&["config", "check"], &[(KEYS, &ring)])
        .output();
    let checked = checked.await.unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{said}");
    assert!(
        said.contains("key new encrypts, old still decrypt"),
        "{said}"
    );
    let made = stack
        .command(&["codec", "key", "--id", "k"], &[])
        .output()
        .await
        .unwrap();
    let line = String::from_utf8(made.stdout).unwrap();
    assert!(everturn_codec::KeyRing::parse(&line).is_ok(), "{line}");
}
