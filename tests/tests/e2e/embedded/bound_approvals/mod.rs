//! What an approval is bound to, and who may give it: attacks on it by whoever can reach the engine, the gateway or the
//! server of a tool. Each of them would let a tool run that nobody has approved, or in the name of somebody who did not.

mod definitions;
mod four_eyes;
mod one_text;

use everturn_proto::ids;
use everturn_tests::{
    events::{data, types},
    model::Model,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::approvals::{
    APPROVED_TURN, ASKING, THROUGH_ENGINE, answer, one_call, pending,
};

/// Sends an answer by hand, as a signal.
async fn signal(stack: &Stack, conversation: &str, answer: &Value) {
    let sent = by_hand(stack, conversation, &["signal"], answer).await;
    assert!(sent.status.success(), "{sent:?}");
}

/// Sends an answer by hand, as the update that only gateways send, and returns what the CLI said.
async fn update(stack: &Stack, conversation: &str, answer: &Value) -> String {
    let sent = by_hand(stack, conversation, &["update", "execute"], answer).await;
    String::from_utf8_lossy(&sent.stdout).into_owned() + &String::from_utf8_lossy(&sent.stderr)
}

async fn by_hand(
    stack: &Stack,
    conversation: &str,
    command: &[&str],
    answer: &Value,
) -> std::process::Output {
    let (workflow_id, input) = (ids::workflow_id(conversation), answer.to_string());
    let options = [
        "--workflow-id",
        &workflow_id,
        "--name",
        "resolve_approval",
        "--input",
        &input,
    ];
    let args = [&["workflow"], command, &options].concat();
    stack.temporal.cli(&args).await
}

/// Waits until query `status` shows that an answer was refused with this code.
async fn refused(stack: &Stack, conversation: &str, code: &str) {
    let workflow_id = ids::workflow_id(conversation);
    wait::until(&format!("an answer is refused with {code}"), || async {
        let args = [
            "workflow",
            "query",
            "--workflow-id",
            &workflow_id,
            "--type",
            "status",
        ];
        let told = stack.temporal.json(&args).await;
        told.to_string().contains(code).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_by_hand_names_what_it_is_for_and_speaks_for_nobody() {
    let stack = Stack::with_agent(Model::start(one_call).await, THROUGH_ENGINE).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let blind = json!({"execution_id": call["execution_id"], "decision": "approve"});
    signal(&stack, &conversation, &blind).await;
    refused(&stack, &conversation, "approval_mismatch").await;
    let said = update(&stack, &conversation, &blind).await;
    assert!(said.contains("approval_mismatch"), "{said}");
    assert_eq!(stack.effects().len(), 0, "nobody has said what is approved");

    let workflow_id = ids::workflow_id(&conversation);
    let status = [
        "workflow",
        "query",
        "--workflow-id",
        &workflow_id,
        "--type",
        "status",
    ];
    let shown = stack.temporal.json(&status).await.to_string();
    assert!(
        shown.contains(call["input_hash"].as_str().unwrap()),
        "{shown}"
    );
    let forged = json!({"execution_id": call["execution_id"], "decision": "approve",
        "input_hash": call["input_hash"], "resolved_by": "the boss"});
    signal(&stack, &conversation, &forged).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    let resolved = data(&events, "approval_resolved")[0];
    assert_eq!(
        (&resolved["resolved_by"], &resolved["resolved_through"]),
        (&json!("operator"), &json!("engine"))
    );
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn nobody_answers_through_the_engine_unless_it_is_switched_on() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let by_hand = json!({"execution_id": call["execution_id"], "decision": "approve",
        "input_hash": call["input_hash"]});
    signal(&stack, &conversation, &by_hand).await;
    refused(&stack, &conversation, "approval_not_through_gateway").await;
    // What only gateways send is no way round it.
    let said = update(&stack, &conversation, &by_hand).await;
    assert!(said.contains("approval_not_through_gateway"), "{said}");
    assert_eq!(pending(&stack, &conversation, 1).await[0], call);
    assert_eq!(stack.effects().len(), 0);

    let yes = json!({"decision": "approve"});
    assert_eq!(answer(&stack, &conversation, &call, yes).await.0, 200);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    let resolved = data(&events, "approval_resolved")[0];
    assert_eq!(resolved["resolved_through"], Value::Null);
    assert_eq!(stack.effects().len(), 1);
    stack.workflow_status(&conversation, "COMPLETED").await;
}
