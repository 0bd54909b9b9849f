//! The id of a deleted conversation may be another owner's next one. Who still has a stream of the old one open sees
//! nothing of it, also while the gateway has not yet found out that the old one is gone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_client::{Frame, GatewayClient};
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::{Stack, frames_until},
    wait,
};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::embedded::keys::{AUTH, create};

/// Sends a request to the first gateway, and returns the status.
async fn ask(stack: &Stack, key: &str, method: &str, path: &str, body: &Value) -> u16 {
    let url = format!("{}/api/v1/agent{path}", stack.gateway_url(0));
    let method = method.parse().unwrap();
    let request = reqwest::Client::new().request(method, url).bearer_auth(key);
    request.json(body).send().await.unwrap().status().as_u16()
}

/// Sends a message, and waits for the end of its turn.
async fn turn(stack: &Stack, key: &str, conversation: &str) -> Vec<Frame> {
    let message = json!({"content": "Tell me.", "message_id": "m"});
    let path = format!("/conversations/{conversation}/messages");
    assert_eq!(ask(stack, key, "POST", &path, &message).await, 202);
    let client = GatewayClient::with_token(&stack.gateway_url(0), Some(key)).unwrap();
    frames_until(&client, conversation, 0, |frame| frame.event == "complete").await
}

/// Reads a stream at the second gateway for as long as there is one, and keeps what it shows.
async fn onlooker(stack: &Stack, key: &str, conversation: &str) -> Arc<Mutex<Vec<Frame>>> {
    let client = GatewayClient::with_token(&stack.gateway_url(1), Some(key)).unwrap();
    let seen: Arc<Mutex<Vec<Frame>>> = Arc::default();
    let (conversation, frames) = (conversation.to_owned(), Arc::clone(&seen));
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(client.follow(&conversation, 0));
        while let Some(frame) = stream.next().await {
            frames.lock().unwrap().push(frame);
        }
    });
    wait::until("the stream has shown what is stored", || async {
        let seen = seen.lock().unwrap();
        seen.iter()
            .any(|frame| frame.event == "complete")
            .then_some(())
    })
    .await;
    seen.lock().unwrap().clear();
    seen
}

#[tokio::test]
async fn a_stream_of_a_deleted_conversation_shows_nothing_of_the_next_one() {
    let script =
        |_: &Request| Reply::pieces(vec!["secret ".to_owned(); 20], Duration::from_millis(25));
    let stack = Stack::new(Model::start(script).await).await;
    let stack = stack.with_gateways(2);
    stack.configure(AUTH);
    // The second gateway must not find out in time that the conversation is gone.
    stack.configure_gateway("poll_interval = \"1h\"\n");
    let scopes = ["--scope", "read,write"];
    let ann = create(
        &stack,
        &[&["--tenant", "acme", "--owner", "ann"], &scopes[..]].concat(),
    )
    .await;
    let bob = create(
        &stack,
        &[&["--tenant", "acme", "--owner", "bob"], &scopes[..]].concat(),
    )
    .await;
    let _running = stack.start().await;
    for round in 0..5 {
        let id = format!("reused_{round}");
        let (create, path) = (json!({"id": id}), format!("/conversations/{id}"));
        let nothing = json!({});
        assert_eq!(
            ask(&stack, &ann, "POST", "/conversations", &create).await,
            201
        );
        // A reader who has seen more events than the next conversation of this id has is not woken by those.
        turn(&stack, &ann, &id).await;
        let seen = onlooker(&stack, &ann, &id).await;
        assert_eq!(ask(&stack, &ann, "DELETE", &path, &nothing).await, 204);
        assert_eq!(
            ask(&stack, &bob, "POST", "/conversations", &create).await,
            201
        );
        let own = turn(&stack, &bob, &id).await;
        let deltas = own.iter().filter(|frame| frame.event == "text_delta");
        assert!(deltas.count() > 1, "its own reader sees the text: {own:#?}");
        let shown = format!("{:?}", seen.lock().unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
