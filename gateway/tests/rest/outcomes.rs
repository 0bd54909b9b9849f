//! Settling the outcome of a tool call over HTTP. What a settled outcome changes is tested with the stores and in
//! `tests/tests/e2e`.

use serde_json::json;

use crate::support::{Answer, TestGateway, rows::waiting};

const OUTCOME: &str = "/conversations/c/tool-calls/exec_1/outcome";

async fn gateway() -> TestGateway {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.add("theirs", "another tenant");
    let call = waiting("exec_1");
    gateway.store.call("c", &call);
    gateway.store.call("another tenant~theirs", &call);
    gateway
}

#[tokio::test]
async fn an_outcome_that_cannot_be_is_refused() {
    let gateway = gateway().await;
    for body in [
        json!({}),
        json!({"outcome": "unknown"}),
        json!({"outcome": "perhaps"}),
        json!({"outcome": "not_happened", "result": 1}),
        json!({"outcome": "happened", "comment": "a\0b"}),
        json!({"outcome": "happened", "comment": "x".repeat(4 * 1024 + 1)}),
    ] {
        let answer = gateway.post(OUTCOME, &body).await;
        answer.assert_problem(400, "invalid_body");
    }
    let large = json!({"outcome": "happened", "result": "x".repeat(1024 * 1024)});
    let answer = gateway.post(OUTCOME, &large).await;
    answer.assert_problem(413, "result_too_large");
    let twice = r#"{"outcome": "happened", "result": {"a": 1, "a": 2}}"#;
    let request = gateway.request("POST", OUTCOME).body(twice);
    let request = request.header("content-type", "application/json");
    let answer = Answer::of(request.send().await.unwrap()).await;
    answer.assert_problem(400, "repeated_key");
}

#[tokio::test]
async fn only_an_unknown_outcome_is_settled() {
    let gateway = gateway().await;
    let body = json!({"outcome": "happened"});
    let answer = gateway.post(OUTCOME, &body).await;
    answer.assert_problem(409, "outcome_known");
    assert_eq!(gateway.turns.take(), [""; 0], "no turn is told");
}

#[tokio::test]
async fn a_call_of_somebody_else_does_not_exist() {
    let gateway = gateway().await;
    for (path, code) in [
        ("theirs/tool-calls/exec_1", "conversation_not_found"),
        ("none/tool-calls/exec_1", "conversation_not_found"),
        ("c/tool-calls/exec_2", "execution_not_found"),
    ] {
        let path = format!("/conversations/{path}/outcome");
        let answer = gateway.post(&path, &json!({"outcome": "happened"})).await;
        answer.assert_problem(404, code);
    }
    let path = "/conversations/c/tool-calls/a%20b/outcome";
    let answer = gateway.post(path, &json!({"outcome": "happened"})).await;
    answer.assert_problem(400, "invalid_id");
}
