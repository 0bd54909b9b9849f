//! Another Everturn as the client: its worker calls the agent of this one as an MCP tool.

use everturn_tests::{
    events::result,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

use super::{ANSWER, assert_paid_once, crash, in_mid_call, model};

const TOOL: &str = "other__default";

/// A stack whose agent asks the agent of another stack.
async fn asking(other: &Stack, more: &str) -> Stack {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I ask.").call(TOOL, &json!({"message": "What is it?"})),
        _ => Reply::text("Done."),
    })
    .await;
    let url = other.gateway_url(0);
    let agent = format!(
        "tools = [\"other__*\"]\n\n[mcp.other]\nurl = \"{url}/mcp\"\neffects = {{\"*\" = \"idempotent\"}}\n{more}"
    );
    Stack::with_agent(model, &agent).await
}

#[tokio::test]
async fn it_gets_the_result_over_crashes_on_both_sides() {
    let other = Stack::new(model().await).await;
    let of_other = other.start().await;
    let stack = asking(&other, "").await;
    let running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    in_mid_call(&other).await;
    let _running = crash(&stack, running).await;
    let _of_other = crash(&other, of_other).await;
    other.asked(3).await;
    other.model.release();
    let events = stack.ended(&conversation, 1).await;
    let answer = result(&events, TOOL);
    assert!(answer.to_string().contains(ANSWER), "{events:#?}");
    assert_paid_once(&other).await;
}

#[tokio::test]
async fn its_cancel_cancels_the_turn() {
    let other = Stack::new(model().await).await;
    let _of_other = other.start().await;
    let stack = asking(&other, "").await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("go").await;
    in_mid_call(&other).await;
    let path = format!("/conversations/{conversation}/cancel");
    stack.post(&path, &json!({"message_id": message})).await;
    stack.ended(&conversation, 1).await;
    wait::until("the other turn is cancelled", || async {
        let list = other.get("/conversations").await;
        let id = list["conversations"][0]["id"].as_str()?.to_owned();
        let types = other.event_types(&id).await;
        types.contains(&"cancelled".to_owned()).then_some(())
    })
    .await;
}
