//! Pools of workers that each do a part of the work, and everything in one process.

use everturn_proto::{
    ids,
    words::{model_queue, tool_queue},
};
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::json;

use crate::embedded::health::Probes;

fn script(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("wait", 0) => Reply::text("I wait.").held(),
        (_, 0) => Reply::text("I look.").call("test_read", &json!({})),
        _ => Reply::text("Here it is."),
    }
}

fn pool(stack: &Stack, work: &str) -> Process {
    stack.spawn(&["worker", "--only", work], work, &[])
}

/// Returns activities of the conversation's last run with the queues on which they were scheduled, in order.
async fn queues(stack: &Stack, conversation: &str) -> Vec<(String, String)> {
    let history = stack
        .temporal
        .history(&ids::workflow_id(conversation))
        .await;
    let events = history["events"].as_array().unwrap().iter();
    let scheduled = events.filter_map(|event| {
        let attributes = &event["activityTaskScheduledEventAttributes"];
        let text = |of: &serde_json::Value| of["name"].as_str().map(str::to_owned);
        Some((
            text(&attributes["activityType"])?,
            text(&attributes["taskQueue"])?,
        ))
    });
    scheduled.collect()
}

fn expected(models: &str, tools: &str) -> Vec<(String, String)> {
    let expected = [
        ("llm_thinking_activity", models),
        ("tool_execution_activity", tools),
        ("llm_thinking_activity", models),
    ];
    expected
        .map(|(activity, queue)| (activity.to_owned(), queue.to_owned()))
        .to_vec()
}

#[tokio::test]
async fn each_pool_does_its_part() {
    let stack = Stack::new(Model::start(script).await).await;
    let _gateway = stack.gateway().await;
    let (_workflows, _tools) = (pool(&stack, "workflows"), pool(&stack, "tools"));
    let models = pool(&stack, "models");
    let (conversation, _) = stack.ask("look").await;
    stack.ended(&conversation, 1).await;
    let queue = &stack.task_queue;
    assert_eq!(
        queues(&stack, &conversation).await,
        expected(&model_queue(queue), &tool_queue(queue))
    );
    // What a dead worker of a pool was doing begins again at another one of its pool.
    let (waiting, _) = stack.ask("wait").await;
    stack.asked(3).await;
    models.kill().await;
    stack.model.release();
    let _models = pool(&stack, "models");
    stack.ended(&waiting, 1).await;
    assert_eq!(stack.model.requests().len(), 4, "one call was cut off");
}

#[tokio::test]
async fn a_turn_that_has_begun_without_pools_ends_with_them() {
    let stack = Stack::new(Model::start(script).await).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker();
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    worker.kill().await;
    stack.model.release();
    let _pools = ["workflows", "models", "tools"].map(|work| pool(&stack, work));
    stack.ended(&conversation, 1).await;
    let own = ("llm_thinking_activity".to_owned(), stack.task_queue.clone());
    assert_eq!(queues(&stack, &conversation).await, [own]);
}

#[tokio::test]
async fn one_process_is_a_gateway_and_a_worker() {
    let stack = Stack::new(Model::start(script).await)
        .await
        .with_gateways(1);
    let probes = Probes::free();
    let listen = stack.url().replace("http://", "");
    let all = probes.spawn(&stack, &["all", "--listen", &listen], &[]);
    probes.says("/readyz", 200).await;
    let (conversation, _) = stack.ask("look").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(all.terminate().await, Some(0));
}
