//! Client tools: the turn waits for the result that the client posts, whatever is restarted in between.

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::approvals::{answer, code, pending};

const AGENT: &str = r#"
tools = ["open_file", { name = "delete_file", approval = "always" }, { name = "hurry", timeout = "2s" }]

[client_tools.open_file]
description = "Reads a file of the user."
input = { properties = { path = { type = "string" } }, required = ["path"] }
effect = "read"

[client_tools.delete_file]
description = "Deletes a file of the user."
title = "Delete {path}"

[client_tools.hurry]
description = "Must be quick."
"#;

const CLIENT_TURN: &str =
    "user_message thought act client_tool_requested observe assistant_message complete";

/// Script of a model that calls the tool which the user's message names.
fn as_told(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("Your client does this.")
            .call(&request.last("user"), &json!({"path": "a.txt"})),
        _ => Reply::text("Done."),
    }
}

async fn stack() -> Stack {
    Stack::with_agent(Model::start(as_told).await, AGENT).await
}

/// Waits until a client tool of the conversation waits for its result.
async fn waiting(stack: &Stack, conversation: &str) -> Value {
    wait::until("a client tool waits", || async {
        let list = stack
            .get(&format!("/conversations/{conversation}/client-tools"))
            .await;
        list["client_tools"]
            .as_array()
            .and_then(|calls| calls.first())
            .cloned()
    })
    .await
}

async fn post(stack: &Stack, conversation: &str, call: &Value, body: &Value) -> (u16, Value) {
    let id = call["execution_id"].as_str().unwrap();
    stack
        .post(
            &format!("/conversations/{conversation}/client-tools/{id}"),
            body,
        )
        .await
}

#[tokio::test]
async fn its_result_goes_to_the_model() {
    let stack = stack().await;
    let _running = stack.start().await;
    for (body, is_error) in [
        (
            json!({"result": {"text": "hello", "big": 9_007_199_254_740_993_u64}}),
            false,
        ),
        (json!({"result": "no such file", "is_error": true}), true),
        (json!({"result": null}), false),
    ] {
        let (conversation, message) = stack.ask("open_file").await;
        let call = waiting(&stack, &conversation).await;
        assert_eq!(
            (&call["tool_input"], &call["message_id"]),
            (&json!({"path": "a.txt"}), &json!(message))
        );
        assert_eq!(
            code(&post(&stack, &conversation, &call, &json!({})).await),
            (400, "invalid_body")
        );
        let first = post(&stack, &conversation, &call, &body).await;
        assert_eq!(first.0, 202, "{first:?}");
        assert_eq!(
            post(&stack, &conversation, &call, &body).await,
            first,
            "the same again"
        );
        let another = post(&stack, &conversation, &call, &json!({"result": "another"})).await;
        assert_eq!(code(&another), (409, "client_tool_answered"));
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(types(&events), CLIENT_TURN);
        let observe = data(&events, "observe")[0];
        assert_eq!(
            (&observe["result"], &observe["is_error"]),
            (&body["result"], &json!(is_error))
        );
        assert_eq!(
            post(&stack, &conversation, &call, &body).await,
            first,
            "also when the turn has ended"
        );
    }
    let told = stack.model.requests()[1].last("tool");
    assert!(told.contains("hello"), "{told}");
}

#[tokio::test]
async fn its_result_has_limits() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("open_file").await;
    let call = waiting(&stack, &conversation).await;
    let huge = json!({"result": "x".repeat(1024 * 1024)});
    assert_eq!(
        code(&post(&stack, &conversation, &call, &huge).await),
        (413, "result_too_large")
    );
    let unknown = json!({"execution_id": "exec_0"});
    assert_eq!(
        code(&post(&stack, &conversation, &unknown, &huge).await),
        (413, "result_too_large")
    );
    let small = json!({"result": 1});
    assert_eq!(
        code(&post(&stack, &conversation, &unknown, &small).await),
        (404, "execution_not_found")
    );
    let large = json!({"result": format!("{}\0", "x".repeat(100_000))});
    assert_eq!(post(&stack, &conversation, &call, &large).await.0, 202);
    let events = stack.ended(&conversation, 1).await;
    let result = &data(&events, "observe")[0]["result"];
    assert_eq!(
        result["truncated"], true,
        "cut for the model, and whole in the store"
    );
}

#[tokio::test]
async fn one_device_claims_it() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("open_file").await;
    let call = waiting(&stack, &conversation).await;
    let id = call["execution_id"].as_str().unwrap();
    let claim = async |claimant: &str, lease_ms: u32| {
        let path = format!("/conversations/{conversation}/client-tools/{id}/claim");
        let body = json!({"claimant": claimant, "lease_ms": lease_ms});
        stack.post(&path, &body).await
    };
    let devices = ["laptop", "phone", "tablet"];
    let [laptop, phone, tablet] = devices.map(|device| claim(device, 600_000));
    let (laptop, phone, tablet) = tokio::join!(laptop, phone, tablet);
    let claims = [laptop, phone, tablet];
    let winners = (0..3).filter(|at| claims[*at].0 == 200);
    let winners: Vec<_> = winners.map(|at| devices[at]).collect();
    let [winner] = winners[..] else {
        panic!("one of them gets it: {claims:?}")
    };
    let refused = claims.iter().filter(|claim| claim.0 != 200);
    assert!(
        refused.clone().count() == 2
            && refused
                .clone()
                .all(|it| code(it).1 == "client_tool_claimed"),
        "{claims:?}"
    );
    // Its time is short now, and it gives no sign of life any more.
    assert_eq!(claim(winner, 1000).await.0, 200);
    let other = *devices.iter().find(|device| **device != winner).unwrap();
    let taken = wait::until("the call is free again", || async {
        Some(claim(other, 600_000).await).filter(|claim| claim.0 == 200)
    });
    assert_eq!(taken.await.1["is_repeated"], true);
    assert_eq!(code(&claim(winner, 1000).await).1, "client_tool_claimed");
    let result = json!({"result": "of a device"});
    assert_eq!(post(&stack, &conversation, &call, &result).await.0, 202);
    assert_eq!(code(&claim(other, 1000).await).1, "client_tool_answered");
    stack.ended(&conversation, 1).await;
}

#[tokio::test]
async fn no_result_comes_in_time() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hurry").await;
    let call = waiting(&stack, &conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), CLIENT_TURN);
    assert!(
        data(&events, "observe")[0]["result"]
            .to_string()
            .contains("in time")
    );
    let late = post(&stack, &conversation, &call, &json!({"result": 1})).await;
    assert_eq!(code(&late), (409, "client_tool_expired"));
}

#[tokio::test]
async fn cancelled_while_it_waits() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("open_file").await;
    let call = waiting(&stack, &conversation).await;
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act client_tool_requested observe cancelled"
    );
    let late = post(&stack, &conversation, &call, &json!({"result": 1})).await;
    assert_eq!(code(&late), (409, "client_tool_answered"));
}

#[tokio::test]
async fn worker_and_gateway_are_stopped_and_started_again() {
    let stack = stack().await;
    let (worker, gateway) = stack.start().await;
    let (conversation, _) = stack.ask("open_file").await;
    let call = waiting(&stack, &conversation).await;
    worker.kill().await;
    gateway.kill().await;
    let _gateway = stack.gateway().await;
    let body = json!({"result": "kept"});
    assert_eq!(
        post(&stack, &conversation, &call, &body).await.0,
        202,
        "stored with no worker alive"
    );
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), CLIENT_TURN);
    assert_eq!(data(&events, "observe")[0]["result"], "kept");
}

#[tokio::test]
async fn its_workflow_is_gone_as_the_result_comes() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("open_file").await;
    let call = waiting(&stack, &conversation).await;
    stack.terminate(&conversation).await;
    assert_eq!(
        post(&stack, &conversation, &call, &json!({"result": "kept"}))
            .await
            .0,
        202
    );
    assert_eq!(
        stack
            .post(&format!("/conversations/{conversation}/resume"), &json!({}))
            .await
            .0,
        202
    );
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), CLIENT_TURN);
    assert_eq!(data(&events, "observe")[0]["result"], "kept");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn a_person_approves_before_the_client_runs_it() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("delete_file").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert_eq!(call["title"], "Delete a.txt");
    let body = json!({"result": "gone"});
    assert_eq!(
        code(&post(&stack, &conversation, &call, &body).await),
        (409, "conflict")
    );
    let edited = json!({"decision": "approve", "tool_input": {"path": "b.txt"}});
    assert_eq!(answer(&stack, &conversation, &call, edited).await.0, 200);
    let waits = waiting(&stack, &conversation).await;
    assert_eq!(waits["tool_input"], json!({"path": "b.txt"}));
    assert_eq!(waits["title"], "Delete b.txt", "of the approved input");
    assert_eq!(post(&stack, &conversation, &call, &body).await.0, 202);
    let events = stack.ended(&conversation, 1).await;
    let expected = "user_message thought act approval_requested approval_resolved client_tool_requested observe \
                    assistant_message complete";
    assert_eq!(types(&events), expected);
    for (event_type, title) in [
        ("act", "Delete a.txt"),
        ("approval_requested", "Delete a.txt"),
        ("approval_resolved", "Delete b.txt"),
        ("client_tool_requested", "Delete b.txt"),
    ] {
        assert_eq!(data(&events, event_type)[0]["title"], title, "{event_type}");
    }
    let path = format!("/conversations/{conversation}/messages");
    let timeline = stack.get(&path).await;
    let items = timeline["timeline"].as_array().unwrap();
    let call = items.iter().find(|item| item["type"] == "tool_call");
    assert_eq!(call.unwrap()["title"], "Delete b.txt");
}
