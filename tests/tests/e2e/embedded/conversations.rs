//! A conversation is deleted while its turn runs, and the limits of a tenant, with real processes.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// Starts a model that holds the first reply back, and answers the other requests at once.
async fn held_once() -> Model {
    Model::start(|request: &Request| match request.number {
        1 => Reply::text("As far as this").held(),
        _ => Reply::text("Done."),
    })
    .await
}

async fn delete(stack: &Stack, conversation: &str) -> u16 {
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    reqwest::Client::new()
        .delete(url)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

async fn count(stack: &Stack, table: &str) -> i64 {
    stack
        .rows()
        .await
        .into_iter()
        .find(|(name, _)| name == table)
        .unwrap()
        .1
}

/// Asserts that another conversation is answered, and that the store has only the rows of that one.
async fn only_the_next_one_is_there(stack: &Stack, deleted: &str) {
    let (next, _) = stack.ask("two").await;
    stack.ended(&next, 1).await;
    assert_eq!(
        stack.get(&format!("/conversations/{deleted}")).await["code"],
        "conversation_not_found"
    );
    assert_eq!(
        stack.get("/conversations").await["conversations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for (table, rows) in [
        ("conversations", 1),
        ("agent_executions", 1),
        ("agent_execution_events", 3),
        ("messages", 2),
    ] {
        assert_eq!(count(stack, table).await, rows, "{table}");
    }
}

#[tokio::test]
async fn a_conversation_is_deleted_in_mid_answer() {
    let stack = Stack::new(held_once().await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    let queued = json!({"content": "later"});
    assert_eq!(stack.send(&conversation, &queued).await.0, 202);

    assert_eq!(delete(&stack, &conversation).await, 204);
    assert_eq!(delete(&stack, &conversation).await, 404);
    stack.workflow_status(&conversation, "TERMINATED").await;
    assert_eq!(count(&stack, "conversations").await, 0);
    // The worker with the LLM call goes on for a moment, and nothing that it does has an effect.
    stack.model.release();
    only_the_next_one_is_there(&stack, &conversation).await;
    assert_eq!(
        stack.model.requests().len(),
        2,
        "the message that waited was not answered"
    );
}

#[tokio::test]
async fn a_save_that_comes_after_the_deletion_brings_nothing_back() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Done.")).await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_stopping_at("save.end.before");
    let (conversation, _) = stack.ask("one").await;
    stack.reached("save.end.before").await;
    assert_eq!(delete(&stack, &conversation).await, 204);
    stack.pass("save.end.before");
    only_the_next_one_is_there(&stack, &conversation).await;
    stack.workflow_status(&conversation, "TERMINATED").await;
}

#[tokio::test]
async fn a_tenant_has_as_many_turns_as_it_may() {
    let stack = Stack::with_agent(held_once().await, "\n[limits]\nconcurrent_turns = 1\n").await;
    let _running = stack.start().await;
    let (first, _) = stack.ask("one").await;
    stack.asked(1).await;
    let second = stack.client().create_conversation(None).await.unwrap();
    let path = format!("/conversations/{second}/messages");
    let post = async || {
        stack
            .post(&path, &json!({"content": "two", "message_id": "m"}))
            .await
    };
    let (status, problem) = post().await;
    assert_eq!(
        (status, &problem["code"]),
        (429, &json!("too_many_turns")),
        "{problem}"
    );
    stack.model.release();
    stack.ended(&first, 1).await;
    assert_eq!(post().await.0, 202);
    stack.ended(&second, 1).await;
}

#[tokio::test]
async fn requests_over_the_rate_are_told_when_to_come_back() {
    let limits = "\n[limits]\nrequests_per_second = 1\nrequest_burst = 3\n";
    let stack = Stack::with_agent(
        Model::start(|_: &Request| Reply::text("Done.")).await,
        limits,
    )
    .await;
    let _gateway = stack.gateway().await;
    let url = stack.url();
    let get = async |path: &str| reqwest::get(format!("{url}{path}")).await.unwrap();
    let refused = wait::until("a request is refused", || async {
        let answers =
            futures::future::join_all((0..10).map(|_| get("/api/v1/agent/conversations"))).await;
        answers.into_iter().find(|answer| answer.status() == 429)
    })
    .await;
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(
        refused.json::<Value>().await.unwrap()["code"],
        "rate_limited"
    );
    assert_eq!(get("/readyz").await.status(), 200);
    wait::until("requests are answered again", || async {
        (get("/api/v1/agent/conversations").await.status() == 200).then_some(())
    })
    .await;
}
