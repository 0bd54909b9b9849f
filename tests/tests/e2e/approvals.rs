//! Tool calls that a person must approve: answered through the gateway or the command line, whatever is restarted in
//! between. What was approved is what runs, at most once.

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

const ASKING: &str = r#"
tools = [{ name = "test_once", approval = "always" }]
"#;

/// Asks for one `once` tool, then says what came of it.
fn one_call(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("May I?").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Done."),
    }
}

fn types(events: &[Value]) -> String {
    events.iter().map(|event| event["event_type"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

async fn signal(stack: &Stack, conversation: &str, input: &Value) {
    let (workflow_id, input) = (ids::workflow_id(conversation), input.to_string());
    let args = ["workflow", "signal", "--workflow-id", &workflow_id, "--name", "resolve_approval", "--input", &input];
    assert!(stack.temporal.cli(&args).await.status.success());
}

#[tokio::test]
async fn approved_or_denied_by_a_signal() {
    for (decision, observed, effects) in [("approve", "execution_id", 1), ("deny", "denied", 0)] {
        let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("do it").await;
        stack.saw(&conversation, "approval_requested").await;
        let requested = stack.events(&conversation).await.pop().unwrap();
        assert_eq!(stack.effects().len(), 0);
        let id = &requested["event_data"]["execution_id"];
        signal(&stack, &conversation, &json!({"execution_id": id, "decision": decision})).await;
        let events = stack.ended(&conversation, 1).await;
        let expected = "user_message thought act approval_requested approval_resolved observe assistant_message complete";
        assert_eq!(types(&events), expected);
        assert!(events[5]["event_data"]["result"].to_string().contains(observed), "{events:#?}");
        assert_eq!(stack.effects().len(), effects);
        stack.workflow_status(&conversation, "COMPLETED").await;
    }
}
