//! Records the stored history of answers to approvals that are refused, when `make histories` asks for the tests that are ignored.

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

use super::record::record;

fn script(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("May I?").call("test_once", &json!({})),
        _ => Reply::text("Done."),
    }
}

/// A call whose first answers come through the engine, where only gateways answer: the store refuses an update that was
/// taken, and the turn refuses a signal. Then a gateway answers.
#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_refused_answers_when_asked() {
    let agent = "tools = [{ name = \"test_once\", approval = \"always\" }]\n\
                 [approvals]\nallow_signal = false\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("approve").await;
    stack.saw(&conversation, "approval_requested").await;
    let path = format!("/conversations/{conversation}/approvals");
    let call = stack.get(&path).await["approvals"][0].clone();
    let answer = json!({"execution_id": call["execution_id"], "decision": "approve",
        "input_hash": call["input_hash"]});
    for command in [&["update", "execute"][..], &["signal"]] {
        let (id, input) = (ids::workflow_id(&conversation), answer.to_string());
        let named = [
            "--workflow-id",
            &id,
            "--name",
            "resolve_approval",
            "--input",
            &input,
        ];
        stack
            .temporal
            .cli(&[&["workflow"], command, &named].concat())
            .await;
    }
    let path = format!("{path}/{}", call["execution_id"].as_str().unwrap());
    let yes = json!({"decision": "approve", "input_hash": call["input_hash"]});
    wait::until("the turn takes the answer", || async {
        (stack.post(&path, &yes).await.0 == 200).then_some(())
    })
    .await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "refused-answer", &conversation, None).await;
}
