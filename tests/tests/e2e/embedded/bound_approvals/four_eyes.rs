//! Tools that somebody else than who asked has to approve.

use everturn_tests::{
    events::{data, types},
    model::Model,
    stack::Stack,
};
use serde_json::{Value, json};

use super::{signal, update};
use crate::embedded::{
    approvals::{APPROVED_TURN, one_call},
    keys::{AUTH, create},
};

/// Answers through the engine are switched on, because the rule must hold for them, too.
const FOUR_EYES: &str = r#"tools = [{ name = "test_once", approval = { by = "other" } }]
[approvals]
allow_signal = true
"#;

/// Somebody with a key.
struct Person<'a> {
    stack: &'a Stack,
    key: String,
}

impl Person<'_> {
    async fn ask(&self, method: reqwest::Method, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/v1/agent{path}", self.stack.url());
        let request = self.stack.http.request(method, url).bearer_auth(&self.key);
        let answer = request.json(&body).send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json().await.unwrap_or_default(),
        )
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(reqwest::Method::GET, path, json!({})).await.1
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(reqwest::Method::POST, path, body).await
    }

    /// Waits for the one call that waits for an approval.
    async fn pending(&self, conversation: &str) -> Value {
        everturn_tests::wait::until("a call waits for an approval", || async {
            let path = format!("/conversations/{conversation}/approvals");
            self.get(&path).await["approvals"][0].as_object().cloned()
        })
        .await
        .into()
    }

    async fn answer(&self, conversation: &str, call: &Value, decision: &str) -> (u16, Value) {
        let id = call["execution_id"].as_str().unwrap();
        let body = json!({"decision": decision, "input_hash": call["input_hash"]});
        self.post(
            &format!("/conversations/{conversation}/approvals/{id}"),
            body,
        )
        .await
    }

    /// Waits until the turn has ended, and returns its events.
    async fn ended(&self, conversation: &str) -> Vec<Value> {
        everturn_tests::wait::until("the turn has ended", || async {
            let page = self
                .get(&format!("/conversations/{conversation}/events"))
                .await;
            let events = page["events"].as_array().cloned().unwrap_or_default();
            types(&events).ends_with("complete").then_some(events)
        })
        .await
    }
}

/// Makes two people, who may both approve: `ann`, and `boss`, who sees no conversation of `ann`.
async fn people(stack: &Stack) -> (Person<'_>, Person<'_>) {
    let scopes = ["--scope", "read", "--scope", "write", "--scope", "approve"];
    let ann = create(
        stack,
        &[&["--tenant", "acme", "--owner", "ann"], &scopes[..]].concat(),
    )
    .await;
    let boss = &["--tenant", "acme", "--owner", "boss"];
    let boss = create(stack, &[&boss[..], &scopes[..]].concat()).await;
    (Person { stack, key: ann }, Person { stack, key: boss })
}

#[tokio::test]
async fn whoever_asked_may_not_approve() {
    let stack = Stack::with_agent(Model::start(one_call).await, FOUR_EYES).await;
    stack.configure(AUTH);
    let (ann, boss) = people(&stack).await;
    let _running = stack.start().await;
    let create = json!({"content": "do it", "create": {}});
    assert_eq!(
        ann.post("/conversations/four-eyes/messages", create)
            .await
            .0,
        202
    );
    let call = ann.pending("four-eyes").await;
    let (status, refused) = ann.answer("four-eyes", &call, "approve").await;
    assert_eq!(
        (status, &refused["code"]),
        (403, &json!("approval_needs_other"))
    );

    // The same by hand, in the name of somebody else.
    let forged = json!({"execution_id": call["execution_id"], "decision": "approve",
        "input_hash": call["input_hash"], "resolved_by": "boss"});
    let said = update(&stack, "acme~four-eyes", &forged).await;
    assert!(said.contains("approval_needs_other"), "{said}");
    signal(&stack, "acme~four-eyes", &forged).await;
    super::refused(&stack, "acme~four-eyes", "approval_needs_other").await;

    assert_eq!(ann.pending("four-eyes").await, call, "it waits on");
    assert_eq!(stack.effects().len(), 0);

    let (status, answered) = boss.answer("four-eyes", &call, "approve").await;
    assert_eq!(status, 200, "{answered}");
    let events = ann.ended("four-eyes").await;
    assert_eq!(
        data(&events, "approval_requested")[0]["approval_by"],
        "other"
    );
    let resolved = data(&events, "approval_resolved");
    assert_eq!(resolved.len(), 1);
    assert_eq!(resolved[0]["resolved_by"], "boss");
    assert_eq!(stack.effects().len(), 1);
}

/// What runs is what two other people have approved, and the event log names both.
#[tokio::test]
async fn another_input_needs_two_other_people() {
    let stack = Stack::with_agent(Model::start(one_call).await, FOUR_EYES).await;
    stack.configure(AUTH);
    let (ann, boss) = people(&stack).await;
    let key = ["--tenant", "acme", "--owner", "kim", "--scope", "approve"];
    let kim = Person {
        stack: &stack,
        key: create(&stack, &key).await,
    };
    let _running = stack.start().await;
    let create = json!({"content": "do it", "create": {}});
    let sent = ann.post("/conversations/edited/messages", create).await;
    assert_eq!(sent.0, 202);
    let call = ann.pending("edited").await;
    let path = format!(
        "/conversations/edited/approvals/{}",
        call["execution_id"].as_str().unwrap()
    );
    let edit = json!({"decision": "approve", "input_hash": call["input_hash"],
        "tool_input": {"sleep_ms": 1, "effect": true}});
    assert_eq!(ann.post(&path, edit.clone()).await.0, 403);
    let (status, answered) = boss.post(&path, edit).await;
    assert_eq!((status, &answered["decision"]), (202, &json!("proposed")));
    let inbox = kim.get("/approvals?state=waiting").await;
    let found = &inbox["approvals"][0];
    assert_eq!(found["conversation_id"], "edited", "{inbox:#}");
    let proposal = &found["proposals"][0];
    assert_eq!(proposal["input_text"], r#"{"effect":true,"sleep_ms":1}"#);
    assert_eq!(stack.effects().len(), 0, "nobody has seconded the boss");
    let second = json!({"decision": "approve", "input_hash": proposal["input_hash"]});
    let (status, answered) = kim.post(&path, second).await;
    assert_eq!(status, 200, "{answered}");
    let events = ann.ended("edited").await;
    let resolved = data(&events, "approval_resolved")[0];
    for (field, expected) in [
        ("resolved_by", json!("kim")),
        ("edited_by", json!("boss")),
        ("edited", json!(true)),
        ("input_text", proposal["input_text"].clone()),
    ] {
        assert_eq!(resolved[field], expected, "{field}");
    }
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn whoever_asked_may_deny() {
    let stack = Stack::with_agent(Model::start(one_call).await, FOUR_EYES).await;
    stack.configure(AUTH);
    let (ann, _) = people(&stack).await;
    let _running = stack.start().await;
    let create = json!({"content": "do it", "create": {}});
    assert_eq!(
        ann.post("/conversations/four-eyes-denied/messages", create)
            .await
            .0,
        202
    );
    let call = ann.pending("four-eyes-denied").await;
    assert_eq!(ann.answer("four-eyes-denied", &call, "deny").await.0, 200);
    let events = ann.ended("four-eyes-denied").await;
    assert_eq!(types(&events), APPROVED_TURN);
    let resolved = data(&events, "approval_resolved")[0];
    assert_eq!(
        (&resolved["decision"], &resolved["resolved_by"]),
        (&json!("denied"), &json!("ann"))
    );
    assert_eq!(stack.effects().len(), 0);
}

#[tokio::test]
async fn a_gateway_that_knows_nobody_does_not_start() {
    let stack = Stack::with_agent(Model::start(one_call).await, FOUR_EYES).await;
    let said = stack
        .refused(&["gateway", "--listen", "127.0.0.1:0"], &[])
        .await;
    assert!(said.contains("clients need no credential"), "{said}");
    assert!(said.contains("test_once"), "{said}");
}
