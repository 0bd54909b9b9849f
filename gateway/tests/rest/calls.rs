//! LLM calls of an agent execution, and their content.

use everturn_gateway::{
    GatewayConfig,
    config::{AuthConfig, Scopes},
};
use serde_json::{Value, json};

use crate::support::TestGateway;

const CALLS: &str = "/conversations/c/executions/run_0/calls";

/// The state of a call with one message of 300 bytes and a newer message.
const STATE: &str = r#"{"provider":"p","model":"m","finish":"stop","text":"Four.","reasoning":"2 + 2","generation":1,
    "started_ms":"1767323045678","sent":{"messages":2,"first_sequence":1,"last_sequence":2,"characters":321,
    "tools":[{"name":"calculate","definition_hash":"h"}]}}"#;

/// Starts a gateway whose callers have these scopes, with three calls of the agent execution `run_0`.
async fn gateway(scopes: Scopes) -> TestGateway {
    let gateway = TestGateway::with(GatewayConfig {
        max_call_bytes: 200,
        auth: AuthConfig {
            anonymous_scopes: scopes,
            ..AuthConfig::default()
        },
        ..GatewayConfig::default()
    })
    .await;
    let store = &gateway.store;
    store.add("c", "default");
    store.begin("c", "m", "run_0");
    for step in 0..3 {
        store.reply("run_0", step);
    }
    store.run(
        "UPDATE execution_checkpoints SET execution_state = $1 WHERE step_number = 1",
        &[STATE],
    );
    store.run(
        "UPDATE agent_definitions SET definition = $1",
        &[r#"{"instructions":"Be secretive.","temperature":0.5}"#],
    );
    store.run(
        "UPDATE messages SET thread = 'run_0', content = $1 WHERE id = 'm'",
        &[&"x".repeat(300)],
    );
    store.run(
        "INSERT INTO messages (
            conversation_id, id, role, status, sequence_number, created_at, content, tool_calls, tool_results, tenant_id,
            thread
        )
        SELECT conversation_id, 'm2', role, status, 2, created_at, $1, '[]', '[]', tenant_id, thread
        FROM messages WHERE id = 'm'",
        &["2 + 2 ?!"],
    );
    gateway
}

#[tokio::test]
async fn calls_are_listed_without_their_content() {
    let gateway = gateway(Scopes::of_users()).await;
    let page = gateway.get(&format!("{CALLS}?limit=2")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(!page.text.contains("Four") && !page.text.contains("secretive"));
    let page = page.json();
    let steps = [0, 1].map(|at| page["calls"][at]["step"].clone());
    assert_eq!(
        (steps, &page["next_after"]),
        ([json!(0), json!(1)], &json!(1))
    );
    let call = &page["calls"][1];
    let fields = ["provider", "model", "finish", "sent_messages", "cost_usd"];
    let expected = json!(["p", "m", "stop", 2, "0.0015"]);
    assert_eq!(json!(fields.map(|field| &call[field])), expected);
    let rest = gateway.get(&format!("{CALLS}?after=1")).await.json();
    assert_eq!(rest["calls"][0]["sent_messages"], Value::Null);
    assert_eq!(
        (&rest["calls"][0]["step"], &rest["next_after"]),
        (&json!(2), &Value::Null)
    );
    let none = json!({"failed": [], "older": 0});
    assert_eq!((&call["tries"], &page["unanswered"]), (&none, &Value::Null));
    assert_eq!(rest["unanswered"], Value::Null);
    for (step, number) in [("1", "4"), ("3", "1")] {
        gateway.store.run(
            "INSERT INTO call_tries (
                agent_execution_id, step, slot, number, generation, model, worker_id, code, reason, is_final,
                retry_after_ms, started_at, ended_at
            )
            VALUES (
                'run_0', $1, 0, $2, 7, 'p/m', 'w', 'llm_overloaded', 'The provider is busy.', FALSE,
                2000, '2026-01-02T03:04:05.000+00:00', '2026-01-02T03:04:05.250+00:00'
            )",
            &[step, number],
        );
    }
    let page = gateway.get(&format!("{CALLS}?limit=2")).await.json();
    let tries = &page["calls"][1]["tries"];
    let expected = json!({"generation": 7, "model": "p/m", "worker_id": "w", "code": "llm_overloaded",
        "reason": "The provider is busy.", "is_final": false, "retry_after_ms": 2000,
        "started_at": "2026-01-02T03:04:05.000Z", "ended_at": "2026-01-02T03:04:05.250Z", "duration_ms": 250});
    assert_eq!(
        (&tries["failed"][0], &tries["older"]),
        (&expected, &json!(3))
    );
    assert_eq!(page["unanswered"], Value::Null, "that is on the last page");
    let rest = gateway.get(&format!("{CALLS}?after=1")).await.json();
    assert_eq!(
        rest["unanswered"],
        json!({"step": 3, "tries": {"failed": [expected], "older": 0}})
    );
    for bad in ["limit=0", "limit=101", "after=x", "after=-1"] {
        let refused = gateway.get(&format!("{CALLS}?{bad}")).await;
        refused.assert_problem(400, "invalid_parameter");
    }
    let none = gateway.get("/conversations/c/executions/run_9/calls").await;
    none.assert_problem(404, "agent_execution_not_found");
}

#[tokio::test]
async fn a_call_with_its_content_needs_the_scope() {
    let user = gateway(Scopes::of_users()).await;
    let refused = user.get(&format!("{CALLS}/1")).await;
    assert!(!refused.text.contains("secretive"));
    refused.assert_problem(403, "insufficient_scope");
    let only_calls = gateway(Scopes::parse("calls")).await;
    let refused = only_calls.get(&format!("{CALLS}/1")).await;
    refused.assert_problem(403, "insufficient_scope");
}

#[tokio::test]
async fn a_call_has_its_content_up_to_the_limit() {
    let gateway = gateway(Scopes::of_developer()).await;
    let call = gateway.get(&format!("{CALLS}/1")).await;
    assert_eq!(call.status, 200, "{}", call.text);
    let call = call.json();
    assert_eq!((&call["step"], &call["model"]), (&json!(1), &json!("m")));
    let answered = &call["answered"];
    assert_eq!(
        (&answered["text"], &answered["reasoning"]),
        (&json!("Four."), &json!("2 + 2"))
    );
    let sent = &call["sent"];
    assert_eq!(sent["instructions"], "Be secretive.");
    assert_eq!(sent["parameters"]["temperature"], 0.5);
    let tools = json!([{"name": "calculate", "definition_hash": "h"}]);
    assert_eq!(sent["tools"], tools);
    let messages = sent["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &sent["older_messages"]), (1, &json!(1)));
    assert_eq!(
        (&messages[0]["content"], &messages[0]["sequence_number"]),
        (&json!("2 + 2 ?!"), &json!(2))
    );
    assert_eq!(sent["is_exact"], true);
    let nothing = gateway.get(&format!("{CALLS}/0")).await.json();
    assert_eq!(nothing["sent"], Value::Null);
    let none = gateway.get(&format!("{CALLS}/7")).await;
    none.assert_problem(404, "call_not_found");
    let bad = gateway.get(&format!("{CALLS}/-1")).await;
    bad.assert_problem(400, "invalid_parameter");
}
