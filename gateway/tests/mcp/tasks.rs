//! Tasks of both eras.

use everturn_proto::words::AgentExecutionStatus;
use serde_json::{Value, json};

use super::{Client, begin, call, config, last};
use crate::support::TestGateway;

fn as_task(key: &str) -> Value {
    let mut params = call("hi", key);
    params["task"] = json!({"ttl": 60_000});
    params
}

#[tokio::test]
async fn a_task_is_read_waited_for_and_listed() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let created = client.result("tools/call", as_task("k")).await;
    let task = &created["task"];
    assert_eq!(
        (&task["status"], &task["ttl"]),
        (&json!("working"), &Value::Null)
    );
    assert!(task["pollInterval"].is_u64() && task["createdAt"].is_string());
    let id = json!({"taskId": task["taskId"]});
    let again = client.result("tools/call", as_task("k")).await;
    assert_eq!(
        again["task"]["taskId"], task["taskId"],
        "one task for a key"
    );

    let turn = begin(&gateway).await;
    turn.asks_for_approval();
    let waiting = client.result("tasks/get", id.clone()).await;
    assert_eq!(waiting["status"], "input_required");
    assert!(
        waiting["statusMessage"]
            .as_str()
            .unwrap()
            .contains("`refund`")
    );
    let mut stream = client.stream(3, "tasks/result", id.clone()).await;
    turn.end(1, AgentExecutionStatus::Failed);
    let result = &last(&mut stream).await["result"];
    assert_eq!(result["structuredContent"]["code"], "step_limit");
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
    assert_eq!(*related, task["taskId"]);
    assert_eq!(
        client.result("tasks/get", id.clone()).await["status"],
        "failed"
    );
    let later = client.result("tasks/result", id.clone()).await;
    assert_eq!(later, *result);

    client.result("tools/call", as_task("k2")).await;
    begin(&gateway).await.complete("42");
    let list = client.result("tasks/list", json!({})).await;
    let listed: Vec<_> = list["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["status"])
        .collect();
    assert_eq!(listed, ["completed", "failed"], "the newest first");
    assert_eq!(list.get("nextCursor"), None);
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let created = client.result("tools/call", as_task("k")).await;
    let id = json!({"taskId": created["task"]["taskId"]});
    let turn = begin(&gateway).await;
    let cancelled = client.result("tasks/cancel", id.clone()).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(
        gateway
            .turns
            .take()
            .iter()
            .any(|call| call.starts_with("cancel "))
    );
    turn.end(0, AgentExecutionStatus::Cancelled);
    assert_eq!(
        client.result("tasks/get", id.clone()).await["status"],
        "cancelled"
    );
    let again = client.ask("tasks/cancel", id).await;
    assert_eq!(again.json()["error"]["code"], -32602);
    for id in [
        json!({}),
        json!({"taskId": "none"}),
        json!({"taskId": "m@none"}),
        json!({"taskId": "a@b@c"}),
    ] {
        let refused = client.ask("tasks/get", id).await;
        assert_eq!(refused.json()["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn a_client_without_a_handshake_gets_a_task_when_it_knows_tasks() {
    let gateway = TestGateway::with(config()).await;
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let client = Client {
        capabilities,
        ..Client::alone(&gateway)
    };
    let created = client.result("tools/call", call("hi", "k")).await;
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working"))
    );
    assert!(created["pollIntervalMs"].is_u64() && created["ttlMs"].is_null());
    let id = json!({"taskId": created["taskId"]});
    let turn = begin(&gateway).await;
    turn.asks_for_approval();
    let waiting = client.result("tasks/get", id.clone()).await;
    assert_eq!(waiting["status"], "working", "the client cannot answer");
    assert!(
        waiting["statusMessage"]
            .as_str()
            .unwrap()
            .contains("approve")
    );
    assert_eq!(
        client.result("tasks/update", id.clone()).await["resultType"],
        "complete"
    );
    assert_eq!(
        client.result("tasks/cancel", id.clone()).await["resultType"],
        "complete"
    );
    turn.end(1, AgentExecutionStatus::Failed);
    let ended = client.result("tasks/get", id.clone()).await;
    assert_eq!(
        (&ended["status"], &ended["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(ended["result"]["structuredContent"]["code"], "step_limit");
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.ask(method, id.clone()).await.status, 404, "{method}");
    }
}
