//! Whole results of tools over HTTP. How a result is cut into slices is tested with the stores.

use everturn_proto::{Json, words::ToolStatus};
use everturn_store::{ResultRange, ToolEnd};
use serde_json::{Value, json};

use crate::support::{TestGateway, rows::waiting};

const RESULT: &str = "/conversations/c/tool-executions/exec_1/result";

async fn gateway() -> TestGateway {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.add("theirs", "another tenant");
    let mut call = waiting("exec_1");
    let result = format!(r#"{{"rows":[{}]}}"#, "1,".repeat(24_050) + "1");
    let result = Json::parse(&result).unwrap();
    call.record.end = Some(ToolEnd {
        status: ToolStatus::Completed,
        result,
        full_result: None,
        is_error: false,
        duration_ms: 0,
        events: Vec::new(),
    });
    gateway.store.call("c", &call);
    "run_2".clone_into(&mut call.agent_execution_id);
    gateway.store.call("another tenant~theirs", &call);
    gateway
}

#[tokio::test]
async fn a_result_is_read_in_slices() {
    let gateway = gateway().await;
    let first = gateway.get(&format!("{RESULT}?limit=8")).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(
        first.json(),
        json!({"execution_id": "exec_1", "text": "{\"rows\":", "offset": 0, "total_bytes": 48_112,
               "next_offset": 8})
    );
    gateway.get(RESULT).await;
    gateway.get(&format!("{RESULT}?offset=8&limit=100")).await;
    let (most, asked) = (ResultRange::new(0, 64 * 1024), ResultRange::new(8, 100));
    assert_eq!(gateway.store.lock().result_ranges[1..], [most, asked]);

    let last = gateway.get(&format!("{RESULT}?offset=48110")).await.json();
    assert_eq!(
        (&last["text"], &last["next_offset"]),
        (&json!("]}"), &Value::Null)
    );
}

#[tokio::test]
async fn a_slice_has_limits() {
    let gateway = gateway().await;
    for bad in ["limit=0", "limit=3", "limit=262145", "limit=x", "offset=-1"] {
        gateway
            .get(&format!("{RESULT}?{bad}"))
            .await
            .assert_problem(400, "invalid_parameter");
    }
    assert_eq!(gateway.store.lock().result_ranges, []);
    for good in ["limit=4", "limit=262144"] {
        assert_eq!(gateway.get(&format!("{RESULT}?{good}")).await.status, 200);
    }
}

#[tokio::test]
async fn a_result_of_somebody_else_does_not_exist() {
    let gateway = gateway().await;
    for (path, code) in [
        ("theirs/tool-executions/exec_1", "conversation_not_found"),
        ("none/tool-executions/exec_1", "conversation_not_found"),
        ("c/tool-executions/exec_2", "execution_not_found"),
    ] {
        gateway
            .get(&format!("/conversations/{path}/result"))
            .await
            .assert_problem(404, code);
    }
    gateway
        .get("/conversations/c/tool-executions/a%20b/result")
        .await
        .assert_problem(400, "invalid_id");
}
