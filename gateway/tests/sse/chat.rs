//! A message and its turn in one request.

use everturn_proto::ids;
use serde_json::{Value, json};

use super::data;
use crate::support::{Sse, TestGateway};

/// Plays the turn of `message_id`, with a sub-agent and another message in between.
fn play(gateway: &TestGateway, conversation_id: &str, message_id: &str) {
    let run = ids::root_agent_execution_id(conversation_id, message_id);
    let append = |message: &str, event_type: &str, data: Value| {
        gateway
            .store
            .append(conversation_id, message, event_type, &data.to_string());
    };
    append(
        "before",
        "complete",
        json!({"agent_execution_id": "run_before"}),
    );
    append(message_id, "user_message", json!({"content": "hi"}));
    append(
        message_id,
        "complete",
        json!({"agent_execution_id": "run_child"}),
    );
    append(
        message_id,
        "assistant_message",
        json!({"content": "ho", "agent_execution_id": run, "step": 0}),
    );
    append(message_id, "complete", json!({"agent_execution_id": run}));
    append("after", "user_message", json!({}));
}

#[tokio::test]
async fn chat_streams_its_turn_and_ends() {
    let gateway = TestGateway::start().await;
    let body = json!({"message": "hi", "message_id": "mine"});
    let mut chat = gateway.chat(&body).await;
    assert_eq!(chat.next().await.unwrap().event, "replay");
    let opening = chat.next().await.unwrap();
    assert_eq!(opening.event, "conversation");
    let opening = data(&opening);
    let (conversation_id, message_id) = (
        opening["conversation_id"].as_str().unwrap(),
        opening["message_id"].as_str().unwrap(),
    );
    assert_eq!(chat.headers["x-conversation-id"], conversation_id);
    assert_eq!(
        gateway.turns.take(),
        [format!("submit {conversation_id} {message_id}")]
    );
    play(&gateway, conversation_id, message_id);
    let expected = [
        "user_message 2",
        "complete 3",
        "assistant_message 4",
        "complete 5",
    ];
    assert_eq!(chat.names(4).await, expected);
    let end = chat.next().await.unwrap();
    assert_eq!(
        data(&end),
        json!({"type": "end", "reason": "turn_ended", "reconnect": false})
    );
    assert!(chat.next().await.is_none());

    // The same message again, after its turn and another one: the same answer.
    gateway
        .store
        .take(conversation_id, message_id, message_id, false);
    let body = json!({"message": "hi", "message_id": "mine", "conversation_id": conversation_id});
    let mut again = gateway.chat(&body).await;
    assert_eq!(again.names(6).await[2..], expected);
    assert_eq!(
        again.names(1).await,
        ["end 5"],
        "the library keeps the last id; the frame has none"
    );
    assert!(again.next().await.is_none());
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn chat_makes_or_takes_the_conversation() {
    let gateway = TestGateway::start().await;
    let chat = async |body: Value| {
        gateway
            .request("POST", "/chat")
            .json(&body)
            .send()
            .await
            .unwrap()
    };
    let made = chat(json!({"message": "hi", "conversation_id": "c"})).await;
    assert_eq!(made.status(), 200);
    assert_eq!(made.headers()["x-conversation-id"], "c");
    assert_eq!(
        gateway.get("/conversations/c").await.json()["agent"],
        "default"
    );
    for _ in 0..3 {
        gateway.store.append("c", "old", "act", "{}");
    }
    let mut taken = Sse::of(chat(json!({"message": "hi", "conversation_id": "c"})).await);
    assert_eq!(data(&taken.next().await.unwrap())["from_sequence"], 4);
    let opening = data(&taken.next().await.unwrap());
    play(&gateway, "c", opening["message_id"].as_str().unwrap());
    assert_eq!(taken.names(1).await, ["user_message 5"]);

    let post = async |body: Value| gateway.post("/chat", &body).await;
    post(json!({"message": " "}))
        .await
        .assert_problem(400, "invalid_message");
    post(json!({"message": "x", "agent": "nobody"}))
        .await
        .assert_problem(400, "unknown_agent");
    post(json!({"message": "x", "conversation_id": "a/b"}))
        .await
        .assert_problem(400, "invalid_id");
    post(json!({"message": "x", "message_id": "a/b"}))
        .await
        .assert_problem(400, "invalid_id");
    post(json!({"content": "x"}))
        .await
        .assert_problem(400, "invalid_body");
}
