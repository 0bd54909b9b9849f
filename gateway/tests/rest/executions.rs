//! The tree of agent executions.

use std::ops::Range;

use everturn_gateway::{GatewayConfig, config::TemporalUi};
use everturn_proto::{Json, ids::AFTER_TURN_STEP, words::ApprovalState};
use serde_json::{Value, json};

use crate::support::{TestGateway, rows::waiting, store::TestStore};

/// Begins agent executions of the turn of `message`: the first is the turn's own, the others are its sub-agents. Each has
/// a reply of a model.
fn begin(store: &TestStore, message: &str, numbers: Range<u32>) {
    let first = format!("run_{}", numbers.start);
    for number in numbers.clone() {
        let id = format!("run_{number}");
        store.begin("c", message, &id);
        store.reply(&id, 0);
        if number > numbers.start {
            let mut call = waiting(&format!("exec_{number}"));
            message.clone_into(&mut call.message_id);
            call.agent_execution_id.clone_from(&first);
            "delegate".clone_into(&mut call.record.call.tool_name);
            call.record.call.tool_input = Some(Json::parse(r#"{"agent":"a","task":"t"}"#).unwrap());
            store.call("c", &call);
            store.run(
                "UPDATE agent_executions SET parent_execution_id = $2, root_execution_id = $2, depth = 1,
                    parent_tool_call_id = $3
                WHERE id = $1",
                &[&id, &first, &call.record.call.call_id],
            );
        }
    }
}

#[tokio::test]
async fn executions_are_a_tree_in_pages() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    begin(&gateway.store, "m", 0..5);
    let mut hook = waiting("exec_hook");
    "run_3".clone_into(&mut hook.agent_execution_id);
    hook.record.approval = ApprovalState::NotNeeded;
    gateway.store.call("c", &hook);
    gateway.store.run(
        "UPDATE tool_execution_records SET step = $1 WHERE execution_id = 'exec_hook'",
        &[&AFTER_TURN_STEP.to_string()],
    );
    let mut seen = Vec::new();
    let mut path = "/conversations/c/executions?limit=2".to_owned();
    loop {
        let page = gateway.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        seen.extend(page["executions"].as_array().unwrap().clone());
        let Some(next) = page["next_after"].as_str() else {
            break;
        };
        path = format!("/conversations/c/executions?limit=2&after={next}");
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(
        (
            &seen[0]["parent_execution_id"],
            &seen[0]["parentActToolCall"]
        ),
        (&Value::Null, &Value::Null)
    );
    let parameters = json!({"agent": "a", "task": "t"});
    let call = json!({"execution_id": "exec_3", "call_id": "call_exec_3",
        "name": "delegate", "parameters": parameters,
        "tool_name": "delegate", "tool_input": parameters});
    assert_eq!(
        (
            &seen[3]["parent_execution_id"],
            &seen[3]["parentActToolCall"]
        ),
        (&json!("run_0"), &call)
    );
    let one = gateway.get("/conversations/c/executions/run_3").await;
    let mut shown = one.json();
    let shown_only_here = ["step_usage", "checkpoints", "tool_executions"];
    let [steps, checkpoints, tools] =
        shown_only_here.map(|field| shown.as_object_mut().unwrap().remove(field).unwrap());
    assert_eq!((one.status.as_u16(), &shown), (200, &seen[3]));
    assert_eq!(shown["cost_usd"], "0.0015");
    assert_eq!(steps[0]["usage"], shown["usage"]);
    assert_eq!(
        (&checkpoints[0]["type"], &checkpoints[0]["execution_id"]),
        (&json!("llm_complete"), &Value::Null)
    );
    assert_eq!(
        (&tools[0]["step"], &tools[0]["approval"]),
        (&Value::Null, &Value::Null),
        "a hook after the turn"
    );
    assert_eq!(
        (&shown["workflow_id"], &shown["workflow_url"]),
        (&json!("conversation-c/exec_3"), &Value::Null)
    );
}

#[tokio::test]
async fn executions_that_are_not_there_or_somebody_elses_are_refused() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.add("foreign", "other tenant");
    gateway.store.begin("other tenant~foreign", "m", "run_0");
    for bad in ["limit=0", "limit=201", "limit=x", "after=x", "after=2026~c"] {
        gateway
            .get(&format!("/conversations/c/executions?{bad}"))
            .await
            .assert_problem(400, "invalid_parameter");
    }
    let get = async |path: &str| gateway.get(&format!("/conversations/{path}")).await;
    get("c/executions/run_9")
        .await
        .assert_problem(404, "agent_execution_not_found");
    get("c/executions/a%20b")
        .await
        .assert_problem(400, "invalid_id");
    get("foreign/executions")
        .await
        .assert_problem(404, "conversation_not_found");
    get("foreign/executions/run_0")
        .await
        .assert_problem(404, "conversation_not_found");
}

#[tokio::test]
async fn executions_of_one_turn_are_found_by_its_message() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    begin(&gateway.store, "m1", 0..1);
    begin(&gateway.store, "m2", 1..2);
    for (turn, expected) in [("m1", vec!["run_0"]), ("m2", vec!["run_1"]), ("m3", vec![])] {
        let path = format!("/conversations/c/executions?message_id={turn}");
        let page = gateway.get(&path).await.json();
        let ids: Vec<_> = page["executions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|execution| execution["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected);
    }
    gateway
        .get("/conversations/c/executions?message_id=a%00b")
        .await
        .assert_problem(400, "invalid_id");
}

#[tokio::test]
async fn a_workflow_has_a_page_where_a_temporal_ui_is_configured() {
    let address = "http://ui.example.com/namespaces/n/workflows/{workflow_id}";
    let gateway = TestGateway::with(GatewayConfig {
        temporal_ui: Some(TemporalUi::parse(address).unwrap()),
        ..GatewayConfig::default()
    })
    .await;
    gateway.store.add("c", "default");
    begin(&gateway.store, "m", 0..2);
    let page = gateway.get("/conversations/c/executions").await.json();
    let urls = [0, 1].map(|at| page["executions"][at]["workflow_url"].clone());
    assert_eq!(
        urls,
        [
            "http://ui.example.com/namespaces/n/workflows/conversation-c",
            "http://ui.example.com/namespaces/n/workflows/conversation-c%2Fexec_1"
        ]
    );
}
