//! Records the histories of turns whose answers do not fit a schema, and of one whose steps are used up.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use super::record::{record, turn};

const OUTPUT: &str = "tools = []\n[agents.default.output]\nschema = { type = \"object\" }\n";

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_an_answer_that_is_mended_when_asked() {
    let script = |request: &Request| match request.number {
        1 => Reply::text("nothing"),
        _ => Reply::text("{}"),
    };
    let stack = Stack::with_agent(Model::start(script).await, OUTPUT).await;
    let _running = stack.start().await;
    turn(&stack, "mended-answer", "answer").await;
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_a_turn_that_is_summarized_when_asked() {
    let script = |request: &Request| {
        if request.last("user").contains("used all the steps") {
            Reply::text("That was all.")
        } else {
            Reply::text("Again.").call("calculate", &json!({"expression": "1 + 1"}))
        }
    };
    let agent = "tools = [\"calculate\"]\nmax_steps = 1\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "FAILED").await;
    record(&stack, "step-limit", &conversation, None).await;
}
