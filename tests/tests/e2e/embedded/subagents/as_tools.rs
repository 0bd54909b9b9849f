//! An agent that is a tool with a name, a description and an input of its own.

use everturn_tests::{
    events::{data, error, result},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

const AGENTS: &str = r#"
tools = [{ name = "research", agent = "researcher", description = "Finds sources.", input = { properties = { topic = { type = "string" } }, required = ["topic"] } }]
[agents.researcher]
provider = "scripted"
model = "scripted"
"#;

#[tokio::test]
async fn a_call_that_does_not_fit_the_input_starts_no_agent() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("").call("research", &json!({"subject": "tea"})),
        _ => Reply::text("Done."),
    })
    .await;
    let stack = Stack::with_agent(model, AGENTS).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    assert!(data(&events, "sub_agent_start").is_empty());
    let why = error(&events, "research");
    assert!(
        why.contains("do not fit the schema of tool `research`") && why.contains("topic"),
        "{why}"
    );
}

#[tokio::test]
async fn an_agent_is_called_by_a_name_of_its_own() {
    let model = Model::start(|request: &Request| {
        let content = request.last("user");
        match (request.results_since_user(), content.as_str()) {
            (0, "go") => Reply::text("").call("research", &json!({"topic": "tea"})),
            (_, "go") => Reply::text("Done."),
            (_, task) => Reply::text(&format!("About {task}")),
        }
    })
    .await;
    let stack = Stack::with_agent(model, AGENTS).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    let task = json!({"topic": "tea"}).to_string();
    assert_eq!(data(&events, "sub_agent_start")[0]["task"], task.as_str());
    assert_eq!(
        *result(&events, "research"),
        format!("About {task}").as_str()
    );
    let path = format!("/conversations/{conversation}/executions");
    let executions = stack.get(&path).await;
    let child = &executions["executions"][1];
    assert_eq!(child["agent"], "researcher", "{executions:#}");
    let call = &child["parentActToolCall"];
    assert_eq!(
        (&call["name"], &call["parameters"]),
        (&json!("research"), &json!({"topic": "tea"}))
    );
    let requests = stack.model.requests();
    let first = requests[0].body.to_string();
    assert!(
        first.contains("Finds sources.") && !first.contains("delegate"),
        "{first}"
    );
}
