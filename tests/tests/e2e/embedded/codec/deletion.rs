//! A conversation that is deleted is deleted from the engine, too.

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

/// Every run of these workflows that the engine lists.
async fn runs(stack: &Stack, conversation: &str) -> Vec<String> {
    let id = ids::workflow_id(conversation);
    let query = format!("WorkflowId = '{id}' OR WorkflowId STARTS_WITH '{id}/'");
    let listed = stack.temporal.list(&query).await;
    listed
        .iter()
        .map(|run| run["execution"]["runId"].as_str().unwrap().to_owned())
        .collect()
}

async fn has_history(stack: &Stack, conversation: &str, run: &str) -> bool {
    let id = ids::workflow_id(conversation);
    stack.temporal.find_history(&id, run).await.is_some()
}

#[tokio::test]
async fn a_deleted_conversation_leaves_no_run_in_the_engine() {
    let model = Model::start(|_: &Request| Reply::text("Yes."));
    let mut stack = Stack::new(model.await).await;
    // The engine deletes a run only when its queues have passed the run's end, and queues of a shared server wait for the
    // runs of other tests, too.
    let temporal = stack.move_to_own_temporal().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.ended(&conversation, 1).await;
    let (status, _) = stack.send(&conversation, &json!({"content": "two"})).await;
    assert_eq!(status, 202);
    stack.ended(&conversation, 2).await;
    let (kept, _) = stack.ask("another").await;
    stack.ended(&kept, 1).await;
    let all = wait::until("the engine lists the run of each turn", || async {
        let listed = runs(&stack, &conversation).await;
        (listed.len() >= 2).then_some(listed)
    })
    .await;
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    let deleted = stack.http.delete(&url).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    wait::until("no run is listed", || async {
        runs(&stack, &conversation).await.is_empty().then_some(())
    })
    .await;
    for run in &all {
        wait::until("its history is gone", || async {
            (!has_history(&stack, &conversation, run).await).then_some(())
        })
        .await;
    }
    assert_eq!(runs(&stack, &kept).await.len(), 1, "others are kept");
    temporal.kill();
}
