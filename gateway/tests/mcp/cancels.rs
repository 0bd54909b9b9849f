//! Cancels of calls: by notification, and never by a disconnect.

use serde_json::json;

use super::{Client, call, config, waiting};
use crate::support::TestGateway;

#[tokio::test]
async fn a_notification_cancels_the_call_of_its_session() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let params = json!({"name": "default", "arguments": {"message": "hi"}});
    let _stream = client.stream(4, "tools/call", params).await;
    let (conversation_id, message_id) = waiting(&gateway).await;
    gateway.turns.take();
    let other = Client {
        session: "s2",
        ..Client::new(&gateway)
    };
    assert_eq!(
        other
            .notify("notifications/cancelled", json!({"requestId": 4}))
            .await,
        202
    );
    assert_eq!(
        client
            .notify("notifications/cancelled", json!({"requestId": 5}))
            .await,
        202
    );
    assert_eq!(
        gateway.turns.take(),
        [""; 0],
        "another session, and another request"
    );
    assert_eq!(
        client
            .notify("notifications/cancelled", json!({"requestId": 4}))
            .await,
        202
    );
    assert_eq!(
        gateway.turns.take(),
        [format!("cancel {conversation_id} {message_id}")]
    );
    let reason = "SELECT cancel_reason FROM messages";
    let reason = sqlx::query_scalar(reason).fetch_one(gateway.store.database.pool());
    let reason: Option<String> = crate::support::store::finish(reason).unwrap();
    assert!(reason.is_some(), "the cancel is stored");
}

#[tokio::test]
async fn a_notification_cancels_the_call_with_its_key() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::alone(&gateway);
    let stream = client.stream(4, "tools/call", call("hi", "k")).await;
    let (conversation_id, message_id) = waiting(&gateway).await;
    drop(stream);
    gateway.turns.take();
    let params = json!({"requestId": 4, "_meta": {"everturn/idempotency_key": "k"}});
    assert_eq!(client.notify("notifications/cancelled", params).await, 202);
    assert_eq!(
        gateway.turns.take(),
        [format!("cancel {conversation_id} {message_id}")]
    );
    assert_eq!(
        client
            .notify("notifications/cancelled", json!({"requestId": 4}))
            .await,
        202
    );
    assert_eq!(gateway.turns.take(), [""; 0]);
}
