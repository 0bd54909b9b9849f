//! Hooks and kill -9 (invariant 6, done once).

use everturn_tests::{
    events::{count, observe, types},
    model::{Model, Reply, Request},
    stack::Stack,
};

use super::{after, before::agent, blocks};

/// A turn whose worker dies while the hook before it runs. Returns its events, the effects of the hook, and how many results
/// of hooks the model was sent.
async fn killed_before(tool: &str) -> (Vec<serde_json::Value>, usize, usize) {
    let model = Model::start(|_: &Request| Reply::text("Done.")).await;
    let hook = format!("{{ name = \"{tool}\", timeout = \"10m\", input = {{ effect = true }} }}");
    let stack = Stack::with_agent(model, &agent(&hook)).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "hello").await;
    stack.held(&conversation, 1).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message act observe assistant_message complete"
    );
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 1);
    (events, stack.effects().len(), blocks(&requests[0]).len())
}

#[tokio::test]
async fn a_hook_that_reads_runs_again_when_its_worker_dies() {
    let (events, effects, given) = killed_before("test_read").await;
    assert_eq!(observe(&events, "test_read")["is_error"], false);
    assert!(effects >= 2, "{effects}");
    assert_eq!(given, 1);
}

#[tokio::test]
async fn a_hook_that_must_not_run_twice_runs_once() {
    let (events, effects, given) = killed_before("test_once").await;
    let observe = observe(&events, "test_once");
    assert!(
        observe["result"]["error"]
            .to_string()
            .contains("may or may not"),
        "{observe}"
    );
    assert_eq!((effects, given), (1, 0));
}

/// The plan of the hooks is stored once, whoever goes on with the turn.
#[tokio::test]
async fn a_plan_that_was_stored_is_kept() {
    let model = Model::start(|_: &Request| Reply::text("Done.")).await;
    let stack = Stack::with_agent(model, &agent("\"test_read\"")).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("think.after_checkpoint");
    let (conversation, _) = stack.ask("hello").await;
    stack.reached("think.after_checkpoint").await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "act"), 1);
    assert_eq!(stack.model.requests().len(), 1);
}

/// A worker dies while the hook after a turn runs. Returns how often the hook had its effect when all has ended.
async fn killed_after(tool: &str) -> usize {
    let stack = after::stack(&after::KEEPS.replace("test_once", tool)).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "hello").await;
    stack.ended(&conversation, 1).await;
    stack.held(&conversation, 1).await;
    worker.kill().await;
    let _next = stack.worker();
    after::completed(&stack, &conversation, 1).await;
    stack.effects().len()
}

#[tokio::test]
async fn a_hook_after_a_turn_runs_again_if_it_may() {
    let effects = killed_after("test_idempotent").await;
    assert!(effects >= 2, "{effects}");
}

#[tokio::test]
async fn a_hook_after_a_turn_runs_once_if_it_must() {
    assert_eq!(killed_after("test_once").await, 1);
}

/// The end is stored, and its worker dies before it has told anybody.
#[tokio::test]
async fn hooks_after_a_turn_survive_the_worker_that_ended_it() {
    let stack = after::stack(after::KEEPS).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("save.end.after");
    let (conversation, _) = stack.ask("hello").await;
    stack.reached("save.end.after").await;
    worker.kill().await;
    let _next = stack.worker();
    stack.ended(&conversation, 1).await;
    after::completed(&stack, &conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
}
