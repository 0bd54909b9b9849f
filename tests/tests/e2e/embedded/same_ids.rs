//! The ids of conversations are a tenant's own: tenants that use the same one notice nothing of each other, whatever they do
//! with it, and nobody can tell whether another tenant has an id.

use std::sync::{Arc, Mutex};

use everturn_client::{Frame, GatewayClient};
use everturn_proto::{ConversationName, ids};
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use futures::StreamExt;
use reqwest::Response;
use serde_json::{Value, json};

use super::keys::AUTH;
use crate::both::isolation::{Operation, Rule, bearer, get, operations, post};

/// The id that all tenants use.
const SAME: &str = "same";

/// A caller of a tenant of their own, who says a word that nobody else says.
struct Tenant<'a> {
    stack: &'a Stack,
    key: String,
    name: &'static str,
    /// What the streams of the conversation and of the list have shown.
    shown: Arc<Mutex<Vec<String>>>,
}

impl<'a> Tenant<'a> {
    /// All owners have the same name, as identity providers of several tenants may give it.
    async fn new(stack: &'a Stack, tenant: &'static str) -> Self {
        Self {
            key: bearer(stack, &["--tenant", tenant, "--owner", "ann"]).await,
            shown: Arc::default(),
            stack,
            name: tenant,
        }
    }

    fn word(&self) -> String {
        format!("word-of-{}", self.name)
    }

    async fn create(&self) {
        let url = format!("{}/api/v1/agent/conversations", self.stack.url());
        let request = self.stack.http.post(url).header("authorization", &self.key);
        let answer = request.json(&json!({"id": SAME})).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", self.name);
        let created: Value = answer.json().await.unwrap();
        assert_eq!(
            (&created["id"], &created["last_sequence"]),
            (&json!(SAME), &json!(0))
        );
    }

    async fn say(&self) {
        // The client's own id of the message is the same, too.
        let message =
            json!({"content": self.word(), "message_id": format!("m-{}", self.turns().await)});
        post(
            self.stack,
            &self.key,
            &format!("/conversations/{SAME}/messages"),
            &message,
        )
        .await;
    }

    async fn delete(&self) {
        let url = format!("{}/api/v1/agent/conversations/{SAME}", self.stack.url());
        let request = self
            .stack
            .http
            .delete(url)
            .header("authorization", &self.key);
        assert_eq!(request.send().await.unwrap().status(), 204, "{}", self.name);
    }

    async fn get(&self, path: &str) -> Value {
        get(self.stack, &self.key, path).await
    }

    /// Everything that can be read of the conversation.
    async fn seen(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for path in [
            "",
            "/events",
            "/messages",
            "/executions",
            "/execution-status",
        ] {
            all.push(self.get(&format!("/conversations/{SAME}{path}")).await);
        }
        all.push(self.get("/conversations").await);
        all
    }

    async fn turns(&self) -> usize {
        let events = self.get(&format!("/conversations/{SAME}/events")).await;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        let ended = events
            .iter()
            .filter(|event| event["event_type"] == "complete");
        ended.count()
    }

    async fn had_turns(&self, count: usize) {
        let what = format!("{count} turns of {} have ended", self.name);
        wait::until(&what, || async {
            (self.turns().await == count).then_some(())
        })
        .await;
    }

    /// Follows the conversation and the list from now on.
    fn follow(&self) {
        let token = self.key.trim_start_matches("Bearer ");
        let client = GatewayClient::with_token(&self.stack.url(), Some(token)).unwrap();
        let shown = Arc::clone(&self.shown);
        tokio::spawn(async move {
            let mut frames = std::pin::pin!(client.follow(SAME, 0));
            while let Some(Frame { event, data, .. }) = frames.next().await {
                shown.lock().unwrap().push(format!("{event} {data}"));
            }
        });
        let url = format!("{}/api/v1/agent/conversation-list/stream", self.stack.url());
        let request = self.stack.http.get(url).header("authorization", &self.key);
        let shown = Arc::clone(&self.shown);
        tokio::spawn(async move {
            let mut answer = request.send().await.unwrap();
            while let Ok(Some(chunk)) = answer.chunk().await {
                let text = String::from_utf8_lossy(&chunk).into_owned();
                shown.lock().unwrap().push(text);
            }
        });
    }

    async fn is_shown(&self, what: &str) {
        wait::until(&format!("{} is shown {what}", self.name), || async {
            let shown = self.shown.lock().unwrap();
            shown.iter().any(|frame| frame.contains(what)).then_some(())
        })
        .await;
    }

    /// Asserts that a text says nothing of another tenant, or of how ids are made.
    fn assert_own(&self, text: &str) {
        let own = self.word();
        let text = text.replace(&own, "");
        // The engine's id of the workflow is shown to developers, and has the tenant.
        let text = text.replace(&ids::workflow_id(&id_of(self.name)), "");
        assert!(!text.contains("word-of-"), "{}: {text}", self.name);
        assert!(
            !text.contains(&format!("~{SAME}\"")),
            "{}: {text}",
            self.name
        );
    }
}

fn id_of(tenant_id: &str) -> String {
    let name = SAME;
    ConversationName { tenant_id, name }.id()
}

fn in_path() -> impl Iterator<Item = Operation> {
    let is_in_path = |operation: &Operation| matches!(operation.rule, Rule::InPath);
    operations().into_iter().filter(is_in_path)
}

/// An answer, as far as it can be the same twice. Of a stream it has the names of the first frames.
async fn comparable(mut answer: Response, id: &str) -> (u16, String) {
    let status = answer.status().as_u16();
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap_or_default()
        .to_owned();
    if kind.starts_with("text/event-stream") {
        let chunk = answer.chunk().await.unwrap().unwrap_or_default();
        let text = String::from_utf8_lossy(&chunk).into_owned();
        let names = text.lines().filter(|line| line.starts_with("event:"));
        return (status, names.take(1).collect());
    }
    let mut body: Value = answer.json().await.unwrap_or_default();
    for field in ["request_id", "created_at", "updated_at", "message_id"] {
        if let Some(fields) = body.as_object_mut() {
            fields.remove(field);
        }
    }
    (status, body.to_string().replace(id, "the id"))
}

/// One that another tenant has, and one that nobody has, get the same answers of every operation.
#[tokio::test]
async fn nobody_can_tell_whether_another_tenant_has_an_id() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let acme = bearer(&stack, &["--tenant", "acme"]).await;
    let probing = [
        bearer(&stack, &["--tenant", "other"]).await,
        bearer(&stack, &["--tenant", "default", "--owner", "ann"]).await,
    ];
    let _gateway = stack.gateway().await;
    let of_conversations = operations().into_iter().filter(|it| {
        matches!(
            it.rule,
            Rule::InPath | Rule::InBody("id" | "conversation_id", ..)
        )
    });
    for (number, operation) in of_conversations.enumerate() {
        let (taken, vacant) = (format!("taken-{number}"), format!("vacant-{number}"));
        post(
            &stack,
            &acme,
            "/conversations",
            &json!({"id": taken, "title": "secret"}),
        )
        .await;
        for key in &probing {
            let mut answers = Vec::new();
            for id in [&taken, &vacant] {
                let answer = operation.ask(&stack, Some(key), id).await;
                answers.push(comparable(answer, id).await);
            }
            assert_eq!(answers[0], answers[1], "{}", operation.name);
            let is_in_path = matches!(operation.rule, Rule::InPath);
            assert_eq!(
                answers[0].0 == 404,
                is_in_path,
                "{}: {answers:?}",
                operation.name
            );
        }
        let path = format!("/conversations/{taken}");
        assert_eq!(get(&stack, &acme, &path).await["title"], "secret");
    }
    let mut ids = Vec::new();
    for key in &probing {
        let list = get(&stack, key, "/conversations").await;
        let listed = list["conversations"].as_array().unwrap();
        ids.push(listed.iter().map(|it| it["id"].clone()).collect::<Vec<_>>());
        assert!(!list.to_string().contains("secret"), "{list}");
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(
        ids[0].len(),
        4,
        "two operations create the conversation of their body"
    );
}

#[tokio::test]
async fn tenants_use_one_id_at_the_same_time() {
    let script =
        |request: &Request| Reply::text(&format!("I heard {}.", request.last("user"))).held();
    let stack = Stack::new(Model::start(script).await).await;
    stack.configure(AUTH);
    let tenants = [
        Tenant::new(&stack, "acme").await,
        Tenant::new(&stack, "other").await,
        Tenant::new(&stack, "default").await,
    ];
    let [acme, other, default] = &tenants;
    let _running = stack.start().await;
    for tenant in &tenants {
        tenant.create().await;
        tenant.follow();
        tenant.say().await;
    }
    // All turns run: each waits for its model.
    stack.asked(3).await;
    for tenant in &tenants {
        let id = id_of(tenant.name);
        drop(stack.workflow_status(&id, "RUNNING").await);
    }
    every_operation_reaches_ones_own(&tenants).await;

    // The end of one of them is not the end of the others.
    let before = default.get(&format!("/conversations/{SAME}/events")).await;
    acme.delete().await;
    acme.is_shown("conversation_removed").await;
    let gone = acme.get(&format!("/conversations/{SAME}")).await;
    assert_eq!(gone["code"], "conversation_not_found");
    assert_eq!(acme.get("/conversations").await["conversations"], json!([]));
    let after = default.get(&format!("/conversations/{SAME}/events")).await;
    assert_eq!(after, before);

    // It is made anew while the turns of the others still run.
    acme.create().await;
    acme.shown.lock().unwrap().clear();
    acme.follow();
    acme.say().await;
    stack.asked(4).await;
    stack.model.release();
    // The operation that sends a message has sent one more to each conversation, and that of acme went.
    for (tenant, turns) in tenants.iter().zip([1, 2, 2]) {
        tenant.had_turns(turns).await;
        tenant.is_shown("complete ").await;
        tenant
            .is_shown(&format!("I heard {}.", tenant.word()))
            .await;
        let seen = json!(tenant.seen().await).to_string();
        assert!(seen.contains(&tenant.word()), "{seen}");
        tenant.assert_own(&seen);
        let shown = tenant.shown.lock().unwrap().concat();
        assert!(
            shown.contains(&format!("\"conversation_id\":\"{SAME}\"")),
            "{shown}"
        );
        tenant.assert_own(&shown);
    }
    let events = acme.get(&format!("/conversations/{SAME}/events")).await;
    assert_eq!(
        events["events"][0]["sequence_number"], 1,
        "nothing of the old one"
    );

    other.delete().await;
    default.say().await;
    default.had_turns(3).await;
    acme.had_turns(1).await;
}

/// Asks every operation of a conversation by the id that all have. The answers have the same status, and say nothing of others.
async fn every_operation_reaches_ones_own(tenants: &[Tenant<'_>]) {
    // It would end the turns, which are needed on.
    let ends =
        |operation: &Operation| operation.method == "DELETE" || operation.name.ends_with("/cancel");
    for operation in in_path().filter(|operation| !ends(operation)) {
        let mut statuses = Vec::new();
        for tenant in tenants {
            let mut answer = operation.ask(tenant.stack, Some(&tenant.key), SAME).await;
            statuses.push(answer.status().as_u16());
            let is_stream = operation.name.ends_with("/stream");
            let text = if is_stream {
                let chunk = answer.chunk().await.unwrap().unwrap_or_default();
                String::from_utf8_lossy(&chunk).into_owned()
            } else {
                answer.text().await.unwrap()
            };
            assert!(
                !text.contains("conversation_not_found"),
                "{}: {text}",
                operation.name
            );
            tenant.assert_own(&text);
        }
        assert!(
            statuses.iter().all(|status| *status == statuses[0]),
            "{}: {statuses:?}",
            operation.name
        );
    }
}

/// Starts a workflow as somebody does who has the CLI of Temporal.
async fn start_by_hand(stack: &Stack, id: &str, tenant: Option<&str>) {
    let mut input = json!({"conversation_id": id, "message": {"content": "Hello"}});
    if let Some(tenant) = tenant {
        input["tenant_id"] = json!(tenant);
    }
    stack.start_by_hand(id, &input).await;
}

#[tokio::test]
async fn a_workflow_by_hand_names_its_tenant() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let acme = bearer(&stack, &["--tenant", "acme"]).await;
    let default = bearer(&stack, &["--tenant", "default"]).await;
    let _running = stack.start().await;
    let of_acme = format!("acme~{unique}");
    start_by_hand(&stack, &unique, None).await;
    start_by_hand(&stack, &of_acme, Some("acme")).await;
    for (id, key) in [(&unique, &default), (&of_acme, &acme)] {
        stack.workflow_status(id, "COMPLETED").await;
        let found = get(&stack, key, &format!("/conversations/{unique}")).await;
        assert_eq!(found["id"], json!(unique), "{found}");
        assert_eq!(found["message_count"], 2, "{found}");
    }
    let rows = stack.rows().await;
    for (id, tenant, says) in [
        (of_acme.as_str(), None, "tenant `acme`"),
        (&of_acme, Some("other"), "tenant `acme`"),
        (&unique, Some("acme"), "`conversation-acme~"),
        ("nobodys", Some("acme"), "`conversation-acme~nobodys`"),
    ] {
        start_by_hand(&stack, id, tenant).await;
        drop(stack.workflow_status(id, "FAILED").await);
        let workflow = ids::workflow_id(id);
        let shown = stack.temporal.history(&workflow).await.to_string();
        assert!(
            shown.contains("invalid_input") && shown.contains(says),
            "{id}: {shown}"
        );
    }
    assert_eq!(stack.rows().await, rows, "nothing was begun");
}
