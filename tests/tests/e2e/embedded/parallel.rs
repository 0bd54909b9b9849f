//! The calls of one step run at once, up to the agent's limit, and the model gets their results in call order.

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

const CALLS: usize = 5;

fn five_calls(request: &Request) -> Reply {
    if request.results_since_user() > 0 {
        return Reply::text("Done.");
    }
    // Each call returns as many bytes as its place says, so that the results can be told apart. The first calls take
    // the longest.
    (1..=CALLS).fold(Reply::text("Five."), |reply, place| {
        let sleep_ms = (CALLS - place) * 100;
        reply.call(
            "test_read",
            &json!({"effect": true, "output_bytes": place, "sleep_ms": sleep_ms}),
        )
    })
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_the_agent_may() {
    let agent = "tools = [\"test_read\"]\nmax_parallel_tools = 2\n";
    let stack = Stack::with_agent(Model::start(five_calls).await, agent).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "go").await;
    stack.held(&conversation, 2).await;
    let id = ids::workflow_id(&conversation);
    let described = stack.temporal.describe(&id).await;
    assert_eq!(
        described["pendingActivities"].as_array().unwrap().len(),
        2,
        "the others are not scheduled"
    );
    stack.let_go(&conversation);
    stack.ended(&conversation, 1).await;
    assert_eq!(stack.effects().len(), CALLS, "in the end all have run");
    assert_eq!(results_of_model(&stack), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn observes_come_as_calls_end_and_results_in_call_order() {
    let stack = Stack::new(Model::start(five_calls).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    let bytes = |kind: &str| -> Vec<usize> {
        let of_kind = events.iter().filter(|event| event["event_type"] == kind);
        of_kind
            .map(|event| {
                event["event_data"]["result"]["output"]
                    .as_str()
                    .unwrap_or_default()
                    .len()
            })
            .collect()
    };
    assert_eq!(bytes("observe").len(), CALLS);
    assert_ne!(
        bytes("observe"),
        [1, 2, 3, 4, 5],
        "the first call takes the longest"
    );
    assert_eq!(results_of_model(&stack), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_cancel_ends_the_calls_that_wait_for_a_slot() {
    let agent = "tools = [\"test_read\"]\nmax_parallel_tools = 1\n";
    let script = |_: &Request| {
        let input = json!({"effect": true, "sleep_ms": 600_000});
        Reply::text("Slowly.")
            .call("test_read", &input)
            .call("test_read", &input)
    };
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    stack.had_effects(1).await;
    stack
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "cancelled");
    assert_eq!(stack.effects().len(), 1);
}

/// Returns the sizes of the tool results in the model's second request, in their order.
fn results_of_model(stack: &Stack) -> Vec<usize> {
    let requests = stack.model.requests();
    let messages = requests[1].body["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let output = |content: &serde_json::Value| -> usize {
        let result: serde_json::Value = serde_json::from_str(content.as_str().unwrap()).unwrap();
        result["output"].as_str().unwrap().len()
    };
    results.map(|message| output(&message["content"])).collect()
}
