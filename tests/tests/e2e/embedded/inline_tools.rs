//! Tools that are over at once run as local activities. They make the same claims, records and events as other tools, and
//! cost the engine almost nothing. What happens when their worker is killed is in `tool_crash.rs`.

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use crate::both::turn::two_tools;

/// An agent whose inline tool changes something.
const AGENT: &str = "tools = [\"test_inline\", \"test_once\"]\n";

#[tokio::test]
async fn inline_tools_are_no_activities_of_the_engine() {
    let stack = Stack::new(Model::start(two_tools).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("What is 21 * 2, and the time?").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act act observe observe assistant_message complete"
    );
    let observes = data(&events, "observe");
    let has_result = |value: &str| observes.iter().any(|it| it["result"]["value"] == value);
    assert!(has_result("42"), "{observes:#?}");
    let acts = data(&events, "act");
    let has_title = |title: &str| acts.iter().any(|act| act["title"] == title);
    assert!(has_title("Calculate 21 * 2"), "{acts:#?}");
    stack.workflow_status(&conversation, "COMPLETED").await;
    let history = stack.history(&conversation).await;
    let activities = history
        .iter()
        .filter(|event| event["eventType"] == "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED");
    assert_eq!(activities.count(), 2, "the two calls of the model");
}

#[tokio::test]
async fn an_inline_tool_that_takes_long_is_stopped() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("Both.")
            .call("test_inline", &json!({"effect": true, "sleep_ms": 60_000}))
            .call("test_once", &json!({"effect": true, "sleep_ms": 2_500})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::with_agent(model.await, AGENT).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("take long").await;
    let events = stack.ended(&conversation, 1).await;
    let observes = data(&events, "observe");
    let of = |tool: &str| observes.iter().find(|observe| observe["tool_name"] == tool);
    let error = &of("test_inline").unwrap()["result"]["error"];
    let error = error.as_str().unwrap();
    assert!(
        error.contains("did not finish within 2 s") && error.contains("may or may not"),
        "{error}"
    );
    assert_eq!(of("test_once").unwrap()["is_error"], false);
    assert_eq!(stack.effects().len(), 2, "each ran once");
}
