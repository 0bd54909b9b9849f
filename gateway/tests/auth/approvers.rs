//! People who sign in with tokens and approve calls in conversations of other people: four eyes.

use everturn_gateway::{AuthConfig, config::Scope};
use everturn_proto::{turn::CallRule, words::ApprovalBy};
use everturn_store::{Access, OutsideTool};
use serde_json::{Value, json};

use super::{
    config, gateway,
    issuer::{Issuer, SigningKey},
    key,
};
use crate::support::{Answer, TestGateway, rows::waiting};

const INBOX: &str = "/approvals?state=waiting";
const CALL: &str = "/conversations/anns/approvals/exec_1";

/// A gateway with a call in a conversation of `ann`, which another person must approve.
struct Office {
    gateway: TestGateway,
    issuer: Issuer,
    key: SigningKey,
}

impl Office {
    async fn open() -> Self {
        let key = SigningKey::rsa("rsa");
        let issuer = Issuer::start(&[&key]).await;
        let gateway = gateway(AuthConfig {
            oidc: vec![issuer.config()],
            ..config()
        })
        .await;
        for (name, by) in [("anns", ApprovalBy::Other), ("own", ApprovalBy::Anyone)] {
            gateway.store.add_of(name, Access::owner("acme", "ann"));
            let call = by_rule(if name == "anns" { "exec_1" } else { "exec_2" }, &by);
            gateway.store.call(&format!("acme~{name}"), &call);
            gateway
                .store
                .run("UPDATE messages SET sent_by = 'ann'", &[]);
        }
        Self {
            gateway,
            issuer,
            key,
        }
    }

    /// Returns a token of a person with the scope `approve`.
    fn token(&self, person: &str) -> String {
        self.token_of("acme", person, Scope::Approve.as_str())
    }

    fn token_of(&self, tenant: &str, person: &str, scope: &str) -> String {
        let claims = json!({"tenant": tenant, "sub": person, "scope": scope});
        self.key.sign(&self.issuer.claims_with(&claims))
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.gateway.bearer(("GET", path), token).await
    }

    async fn post(&self, token: &str, path: &str, body: &str) -> Answer {
        let request = self.gateway.request("POST", path).bearer_auth(token);
        let request = request.header("content-type", "application/json");
        Answer::of(request.body(body.to_owned()).send().await.unwrap()).await
    }

    /// Returns the conversations in a person's inbox.
    async fn inbox(&self, token: &str) -> Vec<String> {
        let inbox = self.get(token, INBOX).await;
        assert_eq!(inbox.status, 200, "{}", inbox.text);
        let calls = inbox.json()["approvals"].as_array().unwrap().clone();
        let names = calls.iter().map(|call| call["conversation_id"].as_str());
        names.map(|name| name.unwrap().to_owned()).collect()
    }
}

fn by_rule(execution_id: &str, by: &ApprovalBy) -> OutsideTool {
    let mut call = waiting(execution_id);
    call.message_id = format!("m_{execution_id}");
    call.agent_execution_id = format!("run_{execution_id}");
    call.record.call.call_id = format!("call_{execution_id}");
    call.record.call.rule = Some(CallRule {
        by: by.into(),
        ..CallRule::default()
    });
    call
}

fn approve(more: &Value) -> String {
    let mut body = json!({"decision": "approve", "input_hash": "h"});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[tokio::test]
async fn a_person_of_the_tenant_finds_what_needs_another_person_and_answers_nothing_else() {
    let office = Office::open().await;
    let bob = office.token("bob");
    let inbox = office.get(&bob, INBOX).await;
    assert_eq!(inbox.status, 200, "{}", inbox.text);
    let calls = inbox.json()["approvals"].clone();
    assert_eq!(calls.as_array().unwrap().len(), 1, "{calls:#}");
    for (field, expected) in [
        ("conversation_id", json!("anns")),
        ("execution_id", json!("exec_1")),
        ("input_text", json!(r#"{"amount":9007199254740993}"#)),
        ("input_hash", json!("h")),
        ("approval_by", json!("other")),
    ] {
        assert_eq!(calls[0][field], expected, "{field}");
    }
    assert!(calls[0]["expires_at"].is_string());
    // Bob reads nothing of the conversation, whatever his scopes are.
    let reader = office.token_of("acme", "bob", "read write approve");
    for path in [
        "/conversations/anns",
        "/conversations/anns/events",
        "/conversations/anns/messages",
        "/conversations/anns/approvals",
    ] {
        let refused = office.get(&reader, path).await;
        refused.assert_problem(404, "conversation_not_found");
    }
    let own = "/conversations/own/approvals/exec_2";
    for path in [own, "/conversations/anns/approvals/exec_9"] {
        let refused = office.post(&bob, path, &approve(&json!({}))).await;
        refused.assert_problem(404, "conversation_not_found");
    }
    let answered = office.post(&bob, CALL, &approve(&json!({}))).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    let turns = office.gateway.turns.take();
    assert_eq!(turns, ["approve acme~anns exec_1 h  by bob"]);
}

#[tokio::test]
async fn whoever_is_no_other_person_does_not_approve() {
    let office = Office::open().await;
    let refused = office
        .post(&office.token("ann"), CALL, &approve(&json!({})))
        .await;
    refused.assert_problem(403, "approval_needs_other");
    // A key without an owner is no person, though it sees every conversation of the tenant.
    let service = key(&office.gateway, Access::tenant("acme"), "approve", None).await;
    let service = service.reveal();
    assert_eq!(office.inbox(&service).await.len(), 2);
    let refused = office.post(&service, CALL, &approve(&json!({}))).await;
    refused.assert_problem(403, "approval_needs_other");
    // Another tenant's person finds nothing, and learns nothing.
    let foreign = office.token_of("beta", "bob", "approve");
    assert_eq!(office.inbox(&foreign).await, [""; 0]);
    let refused = office.post(&foreign, CALL, &approve(&json!({}))).await;
    refused.assert_problem(404, "conversation_not_found");
    let reader = office.token_of("acme", "bob", "read write");
    for refused in [
        office.get(&reader, INBOX).await,
        office.post(&reader, CALL, &approve(&json!({}))).await,
    ] {
        refused.assert_problem(403, "insufficient_scope");
    }
    assert_eq!(office.gateway.turns.take(), [""; 0]);
    assert_eq!(office.inbox(&office.token("ann")).await, ["anns", "own"]);
}

#[tokio::test]
async fn another_input_waits_for_a_second_person() {
    let office = Office::open().await;
    let (bob, kim) = (office.token("bob"), office.token("kim"));
    let remembered = office
        .post(&bob, CALL, &approve(&json!({"remember": true})))
        .await;
    remembered.assert_problem(400, "approval_not_remembered");

    let edit = r#"{"decision":"approve","input_hash":"h","tool_input":{ "to":"Ada", "amount" : 12345678901234567890123 }}"#;
    for _ in 0..2 {
        let proposed = office.post(&bob, CALL, edit).await;
        assert_eq!(proposed.status, 202, "{}", proposed.text);
        assert_eq!(proposed.json()["decision"], "proposed");
    }
    assert_eq!(office.gateway.turns.take(), [""; 0], "the turn waits on");
    let inbox = office.get(&kim, INBOX).await.json();
    let proposals = inbox["approvals"][0]["proposals"].as_array().unwrap();
    assert_eq!(proposals.len(), 1, "{inbox:#}");
    let text = r#"{"amount":12345678901234567890123,"to":"Ada"}"#;
    assert_eq!(
        (&proposals[0]["input_text"], &proposals[0]["proposed_by"]),
        (&json!(text), &json!("bob"))
    );

    let second = json!({"input_hash": proposals[0]["input_hash"]});
    let himself = office.post(&bob, CALL, &approve(&second)).await;
    assert_eq!(himself.status, 202, "{}", himself.text);
    let asker = office
        .post(&office.token("ann"), CALL, &approve(&second))
        .await;
    asker.assert_problem(403, "approval_needs_other");
    let answered = office.post(&kim, CALL, &approve(&second)).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    let turns = office.gateway.turns.take();
    assert_eq!(turns, [format!("approve acme~anns exec_1 h {text} by kim")]);
}
