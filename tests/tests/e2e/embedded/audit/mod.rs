//! The audit trail, with real processes: what is done leaves an entry that nobody takes away.
//!
//! - `admins`: nobody sees more of it than they may

mod admins;

use std::collections::BTreeMap;

use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{AuditActor, AuditEntry, AuditQuery, AuditTarget, NewAuditEntry};
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::embedded::{
    approvals::{ASKING, one_call},
    keys::{AUTH, create, succeed},
};

/// A caller with a credential.
struct Api<'a> {
    stack: &'a Stack,
    key: String,
}

impl Api<'_> {
    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/api/v1{path}", self.stack.url());
        let request = self.stack.http.request(method.parse().unwrap(), url);
        request.bearer_auth(&self.key)
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path);
        let request = body.iter().fold(request, reqwest::RequestBuilder::json);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.ask("POST", path, Some(body)).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    /// Asserts that the caller may not do this.
    async fn may_not(&self, method: &str, path: &str, body: Option<Value>) {
        let (status, body) = self.ask(method, path, body).await;
        assert_eq!(
            (status, &body["code"]),
            (403, &json!("insufficient_scope")),
            "{method} {path}: {body}"
        );
    }

    /// Every entry that the caller may see, read page by page.
    async fn entries(&self, filter: &str) -> Vec<Value> {
        let (mut entries, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/admin/audit?limit=1000&after={after}{filter}");
            let page = self.get(&path).await;
            entries.extend(page["entries"].as_array().unwrap().clone());
            match page["next_after"].as_u64() {
                Some(next) => after = next,
                None => return entries,
            }
        }
    }
}

async fn caller<'a>(stack: &'a Stack, tenant: &str, scopes: &str) -> Api<'a> {
    let args = ["--tenant", tenant, "--scope", scopes];
    Api {
        stack,
        key: create(stack, &args).await,
    }
}

/// The id of a key, which is no secret.
fn id(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

async fn stack() -> Stack {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    stack
}

/// Everything that was stored, without asking a gateway.
async fn stored(stack: &Stack) -> Vec<AuditEntry> {
    let query = AuditQuery {
        limit: 100_000,
        ..AuditQuery::default()
    };
    stack
        .store()
        .await
        .audit
        .audit_entries(&query)
        .await
        .unwrap()
}

/// The entries as `action outcome actor`, each with how often there is one.
fn counted(entries: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let words = [&entry["action"], &entry["outcome"], &entry["actor"]["kind"]].map(word);
        *counts.entry(words.join(" ")).or_default() += 1;
    }
    counts
}

/// Waits until the caller's key does not count any more.
async fn is_refused(caller: &Api<'_>) {
    wait::until("the key is refused", || async {
        let (status, _) = caller.ask("GET", "/agent/conversations", None).await;
        (status == 401).then_some(())
    })
    .await;
}

async fn waiting_call(user: &Api<'_>) -> Value {
    wait::until("a call waits for an approval", || async {
        let list = user.get("/agent/conversations/told/approvals").await;
        list["approvals"].as_array()?.first().cloned()
    })
    .await
}

/// An attacker with the rights to do so approves a call, deletes the conversation and has their key revoked. What they did
/// is told all the same.
#[tokio::test]
async fn what_was_done_is_told_when_all_else_of_it_is_gone() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    stack.configure(AUTH);
    let attacker = caller(&stack, "acme", "read,write,approve").await;
    let admin = caller(&stack, "acme", "admin").await;
    let _running = stack.start().await;
    attacker
        .post("/agent/conversations", json!({"id": "told"}))
        .await;
    attacker
        .post(
            "/agent/conversations/told/messages",
            json!({"content": "secret words"}),
        )
        .await;
    let call = waiting_call(&attacker).await;
    let execution = call["execution_id"].as_str().unwrap();
    let answer = json!({"decision": "approve", "input_hash": call["input_hash"]});
    let path = format!("/agent/conversations/told/approvals/{execution}");
    attacker.post(&path, answer).await;
    stack.had_effects(1).await;
    let session = attacker.request("POST", "/auth/session").send().await;
    assert_eq!(session.unwrap().status(), 204);
    let deleted = attacker
        .ask("DELETE", "/agent/conversations/told", None)
        .await;
    assert_eq!(deleted.0, 204);
    succeed(&stack, &["keys", "revoke", &attacker.key]).await;
    is_refused(&attacker).await;
    let entries = wait::until("the refusal is told", || async {
        let entries = admin.entries("").await;
        let refused = |entry: &Value| entry["action"] == "credential_refused";
        entries.iter().any(refused).then_some(entries)
    })
    .await;
    assert_is_told(&entries, id(&attacker.key), execution, &call);
}

/// Asserts that everything that the attacker did is there, by whom and from where.
fn assert_is_told(entries: &[Value], attacker: &str, execution: &str, call: &Value) {
    let counts = counted(entries);
    for (what, count) in [
        ("key_created done operator", 2),
        ("key_revoked done operator", 1),
        ("approval_answered requested key", 1),
        ("approval_answered done key", 1),
        ("session_opened done key", 1),
        ("conversation_deleted done key", 1),
    ] {
        assert_eq!(counts.get(what), Some(&count), "{what}: {counts:#?}");
    }
    assert!(counts["credential_refused refused key"] >= 1, "{counts:#?}");
    let find = |action: &str| {
        let mut found = entries.iter().rev();
        found.find(|entry| entry["action"] == action).unwrap()
    };
    let approved = find("approval_answered");
    assert_eq!(
        approved["target"],
        json!({"kind": "tool_execution", "id": execution})
    );
    assert_eq!(approved["details"]["decision"], "approve");
    assert_eq!(approved["details"]["input_hash"], call["input_hash"]);
    assert_eq!(approved["details"]["conversation_id"], "told");
    let deleted = find("conversation_deleted");
    assert_eq!(
        deleted["target"],
        json!({"kind": "conversation", "id": "told"})
    );
    for entry in [approved, deleted, find("session_opened")] {
        assert_eq!(entry["actor"]["id"], attacker, "{entry}");
        assert_eq!(entry["address"], "127.0.0.1", "{entry}");
        assert!(entry["request_id"].is_string(), "{entry}");
    }
    let text = serde_json::to_string(entries).unwrap();
    assert!(!text.contains("secret words") && !text.contains("evk_"));
}

#[tokio::test]
async fn turns_that_are_cancelled_or_resumed_are_told() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.").held()).await).await;
    stack.configure(AUTH);
    let user = caller(&stack, "acme", "read,write").await;
    let admin = caller(&stack, "acme", "admin").await;
    let _running = stack.start().await;
    user.post("/agent/conversations", json!({"id": "resumed"}))
        .await;
    let message = json!({"content": "Hello"});
    user.post("/agent/conversations/resumed/messages", message)
        .await;
    stack.asked(1).await;
    let resume = "/agent/conversations/resumed/resume";
    let before = user.post(resume, json!({})).await;
    assert_eq!(before["status"], "running", "it does nothing");
    stack.terminate("acme~resumed").await;
    let resumed = wait::until("it is resumed", || async {
        let answer = user.post(resume, json!({})).await;
        (answer["status"] == "resuming").then_some(())
    });
    resumed.await;
    stack.asked(2).await;
    let cancelled = user
        .post("/agent/conversations/resumed/cancel", json!({}))
        .await;
    assert_eq!(cancelled["status"], "cancelling");
    let counts = counted(&admin.entries("").await);
    assert_eq!(counts.get("turn_resumed done key"), Some(&1), "{counts:#?}");
    assert_eq!(counts.get("turn_cancelled done key"), Some(&1));
}

#[tokio::test]
async fn a_retry_is_told_once_and_strangers_retry_nothing() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::error(400, "bad_request"),
        _ => Reply::text("Yes."),
    });
    let stack = Stack::new(model.await).await;
    stack.configure(AUTH);
    let user = caller(&stack, "acme", "read,write").await;
    let reader = caller(&stack, "acme", "read").await;
    let stranger = caller(&stack, "other", "read,write").await;
    let admin = caller(&stack, "acme", "admin").await;
    let _running = stack.start().await;
    user.post("/agent/conversations", json!({"id": "failed"}))
        .await;
    let sent = json!({"content": "Hello"});
    let sent = user
        .post("/agent/conversations/failed/messages", sent)
        .await;
    let events = "/agent/conversations/failed/events";
    wait::until("the turn has failed", || async {
        let events = user.get(events).await;
        (events["events"].as_array()?.last()?["event_type"] == "error").then_some(())
    })
    .await;
    let retry = "/agent/conversations/failed/retry";
    let body = json!({"message_id": sent["message_id"]});
    let (status, problem) = stranger.ask("POST", retry, Some(body.clone())).await;
    assert_eq!(
        (status, &problem["code"]),
        (404, &json!("conversation_not_found"))
    );
    reader.may_not("POST", retry, Some(body.clone())).await;
    for _ in 0..2 {
        user.post(retry, body.clone()).await;
    }
    stack.asked(2).await;
    let counts = counted(&admin.entries("").await);
    assert_eq!(counts.get("turn_retried done key"), Some(&1), "{counts:#?}");
}

/// Whoever sends made-up keys for as long as they like does not fill the table.
#[tokio::test]
async fn a_flood_of_made_up_keys_fills_a_bounded_number_of_rows() {
    const FLOOD: u64 = 400;
    let stack = stack().await;
    let gateway = stack.gateway().await;
    for number in 0..FLOOD {
        let key = format!("evk_{number:016x}_{}", "A".repeat(43));
        let request = stack
            .http
            .get(format!("{}/api/v1/agent/conversations", stack.url()));
        let status = request.bearer_auth(key).send().await.unwrap().status();
        assert!([401, 429].contains(&status.as_u16()), "{status}");
    }
    gateway.terminate().await;
    let mut refused = stored(&stack).await;
    refused.retain(|entry| entry.action == AuditAction::CredentialRefused);
    let left_out = |entry: &AuditEntry| entry.details.0.get("left_out")?.as_u64();
    let (summaries, told): (Vec<_>, Vec<_>) =
        refused.iter().partition(|entry| left_out(entry).is_some());
    // A slow machine may need a second minute for it.
    assert!((1..=4 * 5).contains(&told.len()), "{}", told.len());
    assert!((1..=4).contains(&summaries.len()), "{summaries:#?}");
    let counted: u64 = summaries.into_iter().filter_map(left_out).sum();
    assert_eq!(counted + told.len() as u64, FLOOD, "each is counted");
    assert_eq!(told[0].address.as_deref(), Some("127.0.0.1"));
    // Two gateways write at the same time, so the first may not be the first in the table.
    let claimed = |entry: &&AuditEntry| entry.details.0["claimed"].clone();
    assert!(
        told.iter()
            .any(|entry| claimed(entry) == "0000000000000000")
    );
}

/// Whoever gets hold of the credentials of a process at the database cannot change what is told, or remove it.
#[tokio::test]
async fn an_entry_cannot_be_changed_by_sql() {
    let stack = stack().await;
    let key = create(&stack, &["--tenant", "acme"]).await;
    let before = stored(&stack).await;
    assert_eq!(before[0].target_id, id(&key));
    for text in [
        "UPDATE audit_events SET actor_id = 'somebody else'",
        "UPDATE audit_events SET keep_until = '2001-01-01T00:00:00+00:00'",
        "DELETE FROM audit_events",
    ] {
        let changed = std::panic::AssertUnwindSafe(stack.run_sql(text, text));
        assert!(changed.catch_unwind().await.is_err(), "{text}");
    }
    assert_eq!(stored(&stack).await, before);
}

fn entry(number: usize) -> NewAuditEntry {
    NewAuditEntry {
        tenant_id: Some("acme".to_owned()),
        actor: AuditActor {
            kind: AuditActorKind::Token,
            id: Some("ann".to_owned()),
        },
        action: AuditAction::TurnCancelled,
        target: AuditTarget {
            kind: AuditTargetKind::Conversation,
            id: format!("c{number}"),
        },
        outcome: AuditOutcome::Done,
        address: None,
        request_id: None,
        details: serde_json::Map::new(),
        keep_days: 1,
    }
}

#[tokio::test]
async fn an_export_is_complete_over_its_pages() {
    const ENTRIES: usize = 1234;
    let stack = stack().await;
    let admin = caller(&stack, "acme", "admin").await;
    let _gateway = stack.gateway().await;
    let store = stack.store().await;
    for number in 0..ENTRIES {
        store.audit.append_audit(&entry(number)).await.unwrap();
    }
    let filter = "&action=turn_cancelled&actor=ann";
    let paged = admin.entries(filter).await;
    assert_eq!(paged.len(), ENTRIES);
    let lines = admin
        .request("GET", &format!("/admin/audit?{}", &filter[1..]))
        .header("accept", "application/x-ndjson");
    let answer = lines.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    let read = |text: &str| {
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    assert_eq!(read(&answer.text().await.unwrap()), paged);
    let args = ["audit", "--json", "--tenant", "acme", "--since", "1h"];
    let args = [&args[..], &["--action", "turn_cancelled"]].concat();
    assert_eq!(read(&succeed(&stack, &args).await), paged);
    let table = succeed(&stack, &["audit", "--tenant", "acme"]).await;
    assert!(table.starts_with("TIME") && table.contains("key_created"));
    assert_eq!(
        counted(&admin.entries("").await)["audit_exported done key"],
        1
    );
}

#[tokio::test]
async fn what_has_been_kept_long_enough_is_removed() {
    let stack = stack().await;
    stack.configure("[audit]\nkeep_days = 30\n");
    create(&stack, &["--tenant", "acme"]).await;
    let old = "INSERT INTO audit_events (id, at, keep_until, actor_kind, actor_id, action, target_kind, target_id, outcome, \
               address, request_id, details) VALUES (9, '2001-01-01T00:00:00+00:00', '2002-01-01T00:00:00+00:00', 'key', \
               'k', 'key_created', 'key', 'old', 'done', '', '', '{}')";
    stack.run_sql(old, old).await;
    let said = succeed(&stack, &["retention", "--older-than", "90d"]).await;
    assert!(
        said.contains("removed 1 entries of the audit trail"),
        "{said}"
    );
    let entries = stored(&stack).await;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.action.as_str(), entry.outcome.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("key_created", "done"),
            ("retention_run", "requested"),
            ("retention_run", "done")
        ]
    );
}
