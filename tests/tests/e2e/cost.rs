//! What a turn costs: rows and history events (B7, DESIGN "Linear history").

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::turn::two_tools;

#[tokio::test]
async fn a_turn_of_1000_tokens_and_one_tool_writes_few_rows() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I need a tool.").call("calculate", &json!({"expression": "1 + 1"})),
        _ => Reply::tokens(1000),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("say much").await;
    let events = stack.ended(&conversation, 1).await;
    let types: Vec<_> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["user_message", "thought", "act", "observe", "assistant_message", "complete"]);
    let answer = events[4]["event_data"]["content"].as_str().unwrap();
    assert_eq!(answer.split_whitespace().count(), 1000);
    let timeline = stack.get(&format!("/conversations/{conversation}/messages")).await;
    assert_eq!(timeline["total"], 5);

    let rows = stack.rows().await;
    let total: i64 = rows.iter().map(|(_, count)| count).sum();
    assert!(total <= 20, "{total} rows: {rows:?}");
    assert!(rows.contains(&("agent_execution_events".to_owned(), 6)), "{rows:?}");
}

#[tokio::test]
async fn a_turn_of_two_steps_has_a_short_history() {
    let stack = Stack::new(Model::start(two_tools).await).await;
    let _running = stack.start().await;
    // A tool's own arguments and results do not count: they are not in the history at all.
    let (conversation, _) = stack.ask(&format!("What is 21 * 2, and the time? {}", "x".repeat(20_000))).await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    let history = stack.temporal.history(&ids::workflow_id(&conversation)).await;
    let events = history["events"].as_array().unwrap();
    assert!(events.len() <= 36, "{} events: {:?}", events.len(), kinds(events));
    let described =
        stack.temporal.json(&["workflow", "describe", "--workflow-id", &ids::workflow_id(&conversation)]).await;
    let bytes: u64 = described["workflowExecutionInfo"]["historySizeBytes"].as_str().unwrap().parse().unwrap();
    assert!(bytes < 8 * 1024, "{bytes} bytes of history");
    println!("a two-step turn: {} history events, {bytes} bytes", events.len());
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["eventType"].as_str().unwrap_or("?")).collect()
}
