//! Sending and cancelling messages.

use everturn_gateway::GatewayConfig;
use serde_json::{Value, json};

use crate::support::{Answer, TestGateway};

#[tokio::test]
async fn message_is_stored_then_handed_over() {
    let gateway = TestGateway::start().await;
    assert_eq!(GatewayConfig::default().max_queued_messages, 100);
    for on_busy in ["queue", "steer", "interrupt"] {
        gateway.store.add(on_busy, "default");
        let body = json!({"content": "hi", "on_busy": on_busy, "later": true});
        let path = format!("/conversations/{on_busy}/messages");
        let answer = gateway.post(&path, &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let answer = answer.json();
        assert_eq!(
            (&answer["conversation_id"], &answer["status"]),
            (&json!(on_busy), &json!("queued"))
        );
        let message_id = answer["message_id"].as_str().unwrap();
        assert_eq!(
            gateway.turns.take(),
            [format!("submit {on_busy} {message_id}")]
        );
        let stored = gateway.store.messages();
        let stored = stored.iter().find(|(id, ..)| id == message_id).unwrap();
        assert_eq!((stored.1.as_str(), &stored.2), ("hi", &None));
    }
}

#[tokio::test]
async fn repeated_message_is_one_message() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/messages";
    let body = json!({"content": "hi", "message_id": "mine"});
    let first = gateway.post(path, &body).await.json();
    let again = gateway.post(path, &body).await.json();
    assert_eq!(first, again);
    let by_header = gateway
        .request("POST", path)
        .header("Idempotency-Key", "mine")
        .json(&json!({"content": "hi"}))
        .send();
    assert_eq!(Answer::of(by_header.await.unwrap()).await.json(), first);
    assert_eq!(
        gateway.turns.take().len(),
        3,
        "a message that waits is handed over again"
    );
    assert_eq!(gateway.store.messages().len(), 1);

    let message_id = first["message_id"].as_str().unwrap();
    gateway.store.take("c", message_id, message_id, false);
    let later = gateway.post(path, &body).await;
    assert_eq!(
        (later.status.as_u16(), later.json()["status"].as_str()),
        (202, Some("accepted_before"))
    );
    assert_eq!(later.json()["message_id"], first["message_id"]);
    assert_eq!(
        gateway.turns.take(),
        [""; 0],
        "one that was answered is not"
    );

    let other = gateway
        .post(
            path,
            &json!({"content": "something else", "message_id": "mine"}),
        )
        .await;
    other.assert_problem(409, "idempotency_conflict");
    assert!(other.text.contains("`mine`"), "{}", other.text);
    assert_eq!(gateway.store.messages().len(), 1);
}

#[tokio::test]
async fn the_first_message_creates_its_conversation() {
    let gateway = TestGateway::start().await;
    gateway.store.add("theirs", "another tenant");
    let path = "/conversations/new/messages";
    let body = |agent: &str, title: &str| {
        let create = json!({"agent": agent, "title": title});
        json!({"content": "hi", "message_id": "mine", "create": create})
    };
    let refused = gateway.post(path, &body("nobody", "")).await;
    refused.assert_problem(400, "unknown_agent");
    let title = json!({"content": "hi", "create": {"title": "x".repeat(513)}});
    let refused = gateway.post(path, &title).await;
    refused.assert_problem(400, "invalid_body");
    let plain = gateway.post(path, &json!({"content": "hi"})).await;
    plain.assert_problem(404, "conversation_not_found");
    assert_eq!(gateway.turns.take(), [""; 0], "nothing was stored");

    let first = gateway.post(path, &body("default", "Sums")).await;
    assert_eq!(first.status, 202, "{}", first.text);
    let again = gateway.post(path, &body("default", "Other")).await;
    assert_eq!(again.json(), first.json(), "it is one message");
    assert_eq!(gateway.store.messages().len(), 1);
    let made = gateway.get("/conversations/new").await.json();
    assert_eq!(
        (&made["agent"], &made["title"]),
        (&json!("default"), &json!("Sums")),
        "the second request changes nothing"
    );
    // Another tenant's conversation with this id is another one.
    let path = "/conversations/theirs/messages";
    let own = gateway.post(path, &body("default", "")).await;
    assert_eq!(own.status, 202, "{}", own.text);
    assert_eq!(own.json()["conversation_id"], "theirs");
}

#[tokio::test]
async fn message_is_kept_while_the_engine_is_away() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    *gateway.turns.is_down.lock().unwrap() = true;
    let body = json!({"content": "hi", "message_id": "mine"});
    let answer = gateway.post("/conversations/c/messages", &body).await;
    answer.assert_problem(503, "temporal_unavailable");
    assert!(answer.text.contains("stored as queued") && answer.header("retry-after") == "1");
    assert_eq!(gateway.store.messages().len(), 1);
    *gateway.turns.is_down.lock().unwrap() = false;
    assert_eq!(
        gateway
            .post("/conversations/c/messages", &body)
            .await
            .status,
        202
    );
    let stored = gateway.store.messages()[0].0.clone();
    assert_eq!(gateway.store.messages().len(), 1);
    *gateway.turns.is_down.lock().unwrap() = true;
    let chat = gateway.post("/chat", &json!({"message": "x"})).await;
    chat.assert_problem(503, "temporal_unavailable");
    let cancel = gateway
        .post("/conversations/c/cancel", &json!({"message_id": stored}))
        .await;
    assert_eq!(
        (cancel.status.as_u16(), cancel.json()),
        (202, json!({"status": "cancelling"})),
        "the cancel is stored"
    );
}

#[tokio::test]
async fn messages_that_cannot_be_are_refused() {
    let config = GatewayConfig {
        max_message_bytes: 10,
        max_queued_messages: 1,
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let post = async |body: Value| gateway.post("/conversations/c/messages", &body).await;
    for blank in ["", " \n\t"] {
        post(json!({"content": blank}))
            .await
            .assert_problem(400, "invalid_message");
    }
    post(json!({"content": "a\0b"}))
        .await
        .assert_problem(400, "invalid_message");
    post(json!({"content": "ä".repeat(6)}))
        .await
        .assert_problem(413, "message_too_long");
    post(json!({"content": "x".repeat(100_000)}))
        .await
        .assert_problem(413, "body_too_large");
    post(json!({"content": "x", "message_id": "a b"}))
        .await
        .assert_problem(400, "invalid_id");
    post(json!({"content": "x", "on_busy": "wait"}))
        .await
        .assert_problem(400, "invalid_body");
    post(json!({})).await.assert_problem(400, "invalid_body");
    post(json!({"content": 5}))
        .await
        .assert_problem(400, "invalid_body");
    for no_object in [
        json!([]),
        json!(["x", null, "queue"]),
        json!("x"),
        json!(null),
    ] {
        post(no_object).await.assert_problem(400, "invalid_body");
    }
    let request = gateway
        .request("POST", "/conversations/c/messages")
        .header("Idempotency-Key", "a b");
    let odd_key = request
        .json(&json!({"content": "x", "message_id": "m"}))
        .send()
        .await
        .unwrap();
    Answer::of(odd_key).await.assert_problem(400, "invalid_id");
    assert_eq!(gateway.turns.take(), [""; 0]);
    assert_eq!(post(json!({"content": "ä".repeat(5)})).await.status, 202);
    let full = post(json!({"content": "one more"})).await;
    full.assert_problem(429, "queue_full");
    assert_eq!(full.header("retry-after"), "5");
}

#[tokio::test]
async fn cancel_names_one_message_and_is_repeatable() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/cancel";
    let idle = Answer::of(gateway.request("POST", path).send().await.unwrap()).await;
    assert_eq!(
        (idle.status.as_u16(), idle.json()),
        (202, json!({"status": "not_running"}))
    );
    assert_eq!(gateway.turns.take(), [""; 0]);

    gateway.store.begin("c", "now", "run");
    for _ in 0..2 {
        assert_eq!(
            gateway.post(path, &json!({})).await.json(),
            json!({"status": "cancelling"})
        );
    }
    assert_eq!(gateway.turns.take(), ["cancel c now", "cancel c now"]);
    for unknown in ["other", "ended"] {
        if unknown == "ended" {
            gateway.store.take("c", "ended", "ended", false);
        }
        let named = gateway.post(path, &json!({"message_id": unknown})).await;
        assert_eq!(
            (named.json(), gateway.turns.take()),
            (json!({"status": "not_running"}), Vec::new()),
            "no signal for a cancel that changes nothing"
        );
    }
    gateway.store.queue("c", "waits");
    let waiting = gateway.post(path, &json!({"message_id": "waits"})).await;
    assert_eq!(
        (waiting.json(), gateway.turns.take()),
        (
            json!({"status": "cancelling"}),
            vec!["cancel c waits".to_owned()]
        )
    );
    gateway
        .post(path, &json!({"message_id": "a b"}))
        .await
        .assert_problem(400, "invalid_id");
    gateway
        .post(path, &json!(["now"]))
        .await
        .assert_problem(400, "invalid_body");
    let untyped = gateway
        .request("POST", path)
        .body("{}")
        .send()
        .await
        .unwrap();
    Answer::of(untyped)
        .await
        .assert_problem(400, "invalid_body");
    assert_eq!(gateway.post(path, &Value::Null).await.status, 202);
    assert_eq!(gateway.turns.take(), ["cancel c now"]);

    *gateway.turns.is_idle.lock().unwrap() = true;
    assert_eq!(
        gateway.post(path, &json!({})).await.json(),
        json!({"status": "cancelling"})
    );
    let calls = ["cancel c now", "submit c now"];
    assert_eq!(gateway.turns.take(), calls, "a new run ends the turn");
}
