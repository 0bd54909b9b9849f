//! What a request calls the id of a conversation is a name of the caller's tenant. Answers and frames show this name, and the
//! engine and the store are asked by the id, which is another text here, because another tenant has the first one.

use everturn_store::Access;
use serde_json::{Value, json};

use crate::{
    auth::key,
    support::{Sse, TestGateway},
};

/// The id of the caller's conversation with the name `c`.
const ID: &str = "acme~c";

async fn gateway() -> TestGateway {
    let mut gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let scopes = "read write approve";
    let key = key(&gateway, Access::tenant("acme"), scopes, None).await;
    gateway.present(&key.reveal());
    let created = gateway.post("/conversations", &json!({"id": "c"})).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.json()["id"], "c");
    gateway
}

#[tokio::test]
async fn answers_have_the_name_and_the_engine_gets_the_id() {
    let gateway = gateway().await;
    let again = gateway.post("/conversations", &json!({"id": "c"})).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["id"]),
        (200, &json!("c"))
    );
    let sent = gateway
        .post("/conversations/c/messages", &json!({"content": "x"}))
        .await;
    assert_eq!(sent.status, 202, "{}", sent.text);
    assert_eq!(sent.json()["conversation_id"], "c");
    let asked = gateway.turns.take().join(" ");
    assert!(asked.contains(ID), "{asked}");
    let mut texts = Vec::new();
    for path in [
        "",
        "/messages",
        "/events",
        "/execution-status",
        "/executions",
        "/approvals",
        "/client-tools",
    ] {
        let answer = gateway.get(&format!("/conversations/c{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        texts.push(answer.text);
    }
    let renamed = gateway
        .patch("/conversations/c", &json!({"title": "own"}))
        .await;
    assert_eq!(
        (&renamed.json()["id"], &renamed.json()["title"]),
        (&json!("c"), &json!("own"))
    );
    texts.push(renamed.text);
    gateway.post("/conversations", &json!({"id": "d"})).await;
    for query in ["", "?limit=1"] {
        let page = gateway.get(&format!("/conversations{query}")).await;
        texts.push(page.text);
    }
    assert!(
        texts
            .iter()
            .all(|text| !text.contains('~') || text.contains("next_before")),
        "{texts:#?}"
    );
    assert!(texts.iter().all(|text| !text.contains(ID)), "{texts:#?}");
    let by_id = gateway.get(&format!("/conversations/{ID}")).await;
    by_id.assert_problem(400, "invalid_id");
}

#[tokio::test]
async fn pages_go_on_behind_a_conversation_with_another_id() {
    let gateway = gateway().await;
    for id in ["d", "e"] {
        gateway.post("/conversations", &json!({"id": id})).await;
    }
    let (mut listed, mut before) = (Vec::new(), String::new());
    loop {
        let page = gateway
            .get(&format!("/conversations?limit=1{before}"))
            .await
            .json();
        listed.extend(page["conversations"][0]["id"].as_str().map(str::to_owned));
        let Some(next) = page["next_before"].as_str() else {
            break;
        };
        before = format!("&before={}", next.replace('+', "%2B"));
    }
    assert_eq!(listed, ["e", "d", "c"]);
}

#[tokio::test]
async fn streams_have_the_name() {
    let gateway = gateway().await;
    let mut list = Sse::of(
        gateway
            .request("GET", "/conversation-list/stream")
            .send()
            .await
            .unwrap(),
    );
    assert!(!format!("{:?}", list.next().await.unwrap().data).contains(ID));
    let mut chat = gateway
        .chat(&json!({"message": "x", "conversation_id": "c"}))
        .await;
    assert_eq!(chat.headers["x-conversation-id"], "c");
    for _ in 0..2 {
        let frame = chat.next().await.unwrap();
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        assert_eq!(data["conversation_id"], "c", "{}", frame.event);
    }
    let url = "/conversations/c/events/stream";
    let mut stream = Sse::of(gateway.request("GET", url).send().await.unwrap());
    let replay: Value = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
    assert_eq!(replay["conversation_id"], "c");
    let deleted = gateway.delete("/conversations/c").await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    loop {
        let frame = list.next().await.unwrap();
        if frame.event == "conversation_removed" {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            assert_eq!(data["conversation_id"], "c");
            break;
        }
    }
    assert!(
        gateway.turns.take().join(" ").contains(ID),
        "its turns were ended, and not another tenant's"
    );
    assert_eq!(gateway.get("/conversations/c").await.status, 404);
}
