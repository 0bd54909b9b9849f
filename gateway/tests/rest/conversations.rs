//! Conversations over HTTP: created, listed, renamed, deleted.

use everturn_proto::ids;
use everturn_store::OutsideTool;
use serde_json::{Value, json};

use crate::support::{Answer, TestGateway, rows::waiting};

#[tokio::test]
async fn conversations_are_created_once_and_shown() {
    let gateway = TestGateway::start().await;
    let created = gateway
        .post("/conversations", &json!({"id": "c1", "title": "Weather"}))
        .await;
    assert_eq!(created.status, 201);
    let body = created.json();
    assert_eq!(
        (&body["id"], &body["agent"], &body["title"]),
        (&json!("c1"), &json!("default"), &json!("Weather"))
    );
    assert_eq!(
        (&body["message_count"], &body["last_sequence"]),
        (&json!(0), &json!(0))
    );
    assert!(body["created_at"].as_str().unwrap().ends_with('Z'));

    let again = gateway
        .post("/conversations", &json!({"id": "c1", "title": "other"}))
        .await;
    assert_eq!((again.status.as_u16(), again.json()), (200, body.clone()));
    let shown = gateway.get("/conversations/c1").await;
    assert_eq!(shown.status, 200);
    let shown = shown.json();
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(shown[field], *value, "{field}");
    }
    assert_eq!(
        (&shown["state"], &shown["cost_usd"]),
        (&json!("idle"), &Value::Null)
    );
    assert_eq!(shown["usage"]["input_tokens"], 0);

    let made = gateway.post("/conversations", &json!({})).await;
    assert_eq!(made.status, 201);
    assert!(everturn_proto::ids::is_valid(
        made.json()["id"].as_str().unwrap()
    ));
}

#[tokio::test]
async fn conversations_are_listed_in_pages() {
    let gateway = TestGateway::start().await;
    for number in 0..5 {
        gateway.store.add(&format!("c{number}"), "default");
    }
    gateway.store.add("foreign", "other tenant");
    let mut seen = Vec::new();
    let mut path = "/conversations?limit=2".to_owned();
    loop {
        let page = gateway.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        seen.extend(
            page["conversations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_before"].as_str() else {
            break;
        };
        path = format!("/conversations?limit=2&before={next}");
    }
    assert_eq!(seen, ["c4", "c3", "c2", "c1", "c0"]);
    for bad in [
        "limit=0",
        "limit=201",
        "limit=x",
        "before=x",
        "before=2026~c",
    ] {
        gateway
            .get(&format!("/conversations?{bad}"))
            .await
            .assert_problem(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn a_list_says_what_goes_on_in_each_conversation() {
    let gateway = TestGateway::start().await;
    for id in ["asks", "idle"] {
        gateway.store.add(id, "default");
    }
    for call in ["exec_1", "exec_2", "client_1"] {
        gateway.store.call("asks", &waiting(call));
    }
    let page = gateway.get("/conversations").await.json();
    let rows: Vec<_> = page["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([
                row["id"],
                row["state"],
                row["waiting_approvals"],
                row["waiting_client_tools"]
            ])
        })
        .collect();
    assert_eq!(
        rows,
        [
            json!(["idle", "idle", 0, 0]),
            json!(["asks", "waiting_for_approval", 2, 1])
        ]
    );
}

#[tokio::test]
async fn conversations_that_wait_are_found() {
    let gateway = TestGateway::start().await;
    for id in ["asks", "idle", "runs"] {
        gateway.store.add(id, "default");
    }
    for (id, call) in [("asks", "exec_1"), ("runs", "client_1")] {
        let call = OutsideTool {
            agent_execution_id: format!("run_{id}"),
            ..waiting(call)
        };
        gateway.store.call(id, &call);
    }
    let found = async |party: &str| {
        let path = format!("/conversations?waiting_for={party}");
        let page = gateway.get(&path).await.json();
        let ids = page["conversations"].as_array().unwrap().iter();
        ids.map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("approval").await, ["asks"]);
    assert_eq!(found("client_tool").await, ["runs"]);
    gateway
        .get("/conversations?waiting_for=rain")
        .await
        .assert_problem(400, "invalid_parameter");
    let shown = gateway.get("/conversations/asks").await.json();
    assert_eq!(
        (&shown["state"], &shown["waiting_approvals"]),
        (&json!("waiting_for_approval"), &json!(1))
    );
}

#[tokio::test]
async fn conversations_that_cannot_be_are_refused() {
    let gateway = TestGateway::start().await;
    let post = async |body: Value| gateway.post("/conversations", &body).await;
    post(json!({"id": "a/b"}))
        .await
        .assert_problem(400, "invalid_id");
    post(json!({"id": ""}))
        .await
        .assert_problem(400, "invalid_id");
    for dots in [".", ".."] {
        let refused = post(json!({"id": dots})).await;
        refused.assert_problem(400, "invalid_id");
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains("remove both from a path"), "{detail}");
    }
    post(json!({"agent": "nobody"}))
        .await
        .assert_problem(400, "unknown_agent");
    post(json!({"title": "x".repeat(513)}))
        .await
        .assert_problem(400, "invalid_body");
    post(json!({"title": "a\0b"}))
        .await
        .assert_problem(400, "invalid_body");
}

async fn listed(gateway: &TestGateway, query: &str) -> Vec<String> {
    let page = gateway.get(&format!("/conversations?{query}")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let page = page.json();
    page["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn conversations_are_searched() {
    let gateway = TestGateway::start().await;
    for (id, title) in [
        ("a", "Weather in Rome"),
        ("b", "100% rain"),
        ("c", "Straße"),
    ] {
        assert_eq!(
            gateway
                .post("/conversations", &json!({"id": id, "title": title}))
                .await
                .status,
            201
        );
    }
    for (query, expected) in [
        ("search=ROME", &["a"][..]),
        ("search=%25", &["b"]),
        ("search=STRASSE", &["c"]),
        ("search=_", &[]),
        ("search=", &["c", "b", "a"]),
        ("search=r&agent=default&limit=1", &["c"]),
        ("agent=other", &[]),
    ] {
        assert_eq!(listed(&gateway, query).await, expected, "{query}");
    }
    let long = gateway
        .get(&format!("/conversations?search={}", "x".repeat(513)))
        .await;
    long.assert_problem(400, "invalid_parameter");
}

#[tokio::test]
async fn a_page_of_a_search_may_be_empty_and_go_on() {
    let gateway = TestGateway::start().await;
    gateway
        .post("/conversations", &json!({"id": "a", "title": "needle"}))
        .await;
    for number in 0..=everturn_store::MAX_SCANNED {
        gateway.store.add(&format!("c{number}"), "default");
    }
    let page = gateway.get("/conversations?search=needle").await.json();
    assert_eq!(page["conversations"], json!([]));
    let next = page["next_before"].as_str().unwrap();
    assert_eq!(
        listed(&gateway, &format!("search=needle&before={next}")).await,
        ["a"]
    );
}

#[tokio::test]
async fn a_conversation_is_renamed() {
    let gateway = TestGateway::start().await;
    let made = gateway
        .post("/conversations", &json!({"id": "c", "title": "old"}))
        .await
        .json();
    let renamed = gateway
        .patch("/conversations/c", &json!({"title": "new"}))
        .await;
    assert_eq!(renamed.status, 200, "{}", renamed.text);
    assert_eq!(
        (&renamed.json()["title"], &renamed.json()["updated_at"]),
        (&json!("new"), &made["updated_at"])
    );
    assert_eq!(gateway.get("/conversations/c").await.json()["title"], "new");
    assert_eq!(
        gateway
            .patch("/conversations/c", &json!({"title": ""}))
            .await
            .json()["title"],
        ""
    );
    for nothing in [json!({}), json!({"title": null})] {
        let same = gateway.patch("/conversations/c", &nothing).await;
        assert_eq!(
            (same.status.as_u16(), &same.json()["title"]),
            (200, &json!(""))
        );
    }
    for bad in [
        json!({"title": "x".repeat(513)}),
        json!({"title": "a\0b"}),
        json!({"title": 1}),
        json!({"metadata": {"a key": "x"}}),
    ] {
        gateway
            .patch("/conversations/c", &bad)
            .await
            .assert_problem(400, "invalid_body");
    }
    gateway
        .patch("/conversations/none", &json!({"title": "x"}))
        .await
        .assert_problem(404, "conversation_not_found");
}

#[tokio::test]
async fn a_conversation_is_deleted_once_its_turn_is_ended() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.append("c", "m", "user_message", "{}");
    *gateway.turns.is_down.lock().unwrap() = true;
    let refused = gateway.delete("/conversations/c").await;
    refused.assert_problem(503, "temporal_unavailable");
    assert!(refused.text.contains("Nothing was deleted") && refused.header("retry-after") == "1");
    assert_eq!(gateway.get("/conversations/c").await.status, 200);
    *gateway.turns.is_down.lock().unwrap() = false;
    gateway.turns.take();

    let deleted = gateway.delete("/conversations/c").await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    assert_eq!(
        gateway.turns.take(),
        ["terminate c the conversation was deleted", "delete_runs c"]
    );
    assert_eq!(listed(&gateway, "").await, [""; 0]);
    for path in [
        "",
        "/messages",
        "/events",
        "/events/stream",
        "/execution-status",
    ] {
        gateway
            .get(&format!("/conversations/c{path}"))
            .await
            .assert_problem(404, "conversation_not_found");
    }
    gateway
        .delete("/conversations/c")
        .await
        .assert_problem(404, "conversation_not_found");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

async fn create_with_key(gateway: &TestGateway, key: &str, body: &Value) -> Answer {
    let request = gateway
        .request("POST", "/conversations")
        .header("Idempotency-Key", key)
        .json(body);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn one_key_creates_one_conversation() {
    let gateway = TestGateway::start().await;
    let first = create_with_key(&gateway, "key-1", &json!({"title": "Weather"})).await;
    assert_eq!(first.status, 201, "{}", first.text);
    assert!(ids::is_valid(first.json()["id"].as_str().unwrap()));
    // The first body decides.
    let again = create_with_key(&gateway, "key-1", &json!({"title": "other"})).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.json()));
    let another = create_with_key(&gateway, "key-2", &json!({})).await;
    assert_eq!(another.status, 201);
    assert_ne!(another.json()["id"], first.json()["id"]);
    let named = create_with_key(&gateway, "key-1", &json!({"id": "mine"})).await;
    assert_eq!(
        (named.status.as_u16(), &named.json()["id"]),
        (201, &json!("mine"))
    );
    create_with_key(&gateway, "a key", &json!({}))
        .await
        .assert_problem(400, "invalid_id");

    // The same at any other gateway.
    let elsewhere = TestGateway::start().await;
    assert_eq!(
        create_with_key(&elsewhere, "key-1", &json!({}))
            .await
            .json()["id"],
        first.json()["id"]
    );
}

#[tokio::test]
async fn a_chat_with_a_key_has_one_conversation() {
    let gateway = TestGateway::start().await;
    let mut ids = Vec::new();
    for _twice in 0..2 {
        let request = gateway
            .request("POST", "/chat")
            .header("Idempotency-Key", "key-1");
        let response = request
            .json(&json!({"message": "hi"}))
            .send()
            .await
            .unwrap();
        ids.push(
            response.headers()["x-conversation-id"]
                .to_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(gateway.store.messages().len(), 1);
}
