//! The client of a gateway: how it follows a stream that is broken off, moved and ended.

#![allow(clippy::unwrap_used)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::{get, post},
};
use everturn_client::{Claim, GatewayClient, Update, list::ListedConversation};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The connections that are still to come, and the queries of those that came.
#[derive(Clone, Default)]
struct Script {
    responses: Arc<Mutex<Vec<&'static str>>>,
    queries: Arc<Mutex<Vec<String>>>,
}

async fn stream(State(script): State<Script>, RawQuery(query): RawQuery) -> String {
    script
        .queries
        .lock()
        .unwrap()
        .push(query.unwrap_or_default());
    script
        .responses
        .lock()
        .unwrap()
        .pop()
        .unwrap_or_default()
        .to_owned()
}

/// Serves on a free port, and returns the URL.
async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

#[tokio::test]
async fn a_stream_is_followed_to_its_end() {
    let moved = "retry: 1\nevent: reconnect\ndata: {\"type\":\"reconnect\",\"delay_ms\":1}\n\n";
    let mut responses = vec![
        "event: replay\ndata: {\"type\":\"replay\"}\n\nid: 1-19a8f3c2b10\nevent: act\ndata: {\"type\":\"act\",\"sequence_number\":1}\n\n",
        moved,
        "id: 2\nevent: turn_error\ndata: {\"type\":\"error\",\"sequence_number\":2}\n\n\
         event: end\ndata: {\"type\":\"end\",\"reason\":\"conversation_deleted\",\"reconnect\":false}\n\n",
    ];
    responses.reverse();
    let script = Script {
        responses: Arc::new(Mutex::new(responses)),
        ..Script::default()
    };
    let path = "/api/v1/agent/conversations/c/events/stream";
    let app = Router::new()
        .route(path, get(stream))
        .with_state(script.clone());
    let url = serve(app).await;

    let frames: Vec<_> = GatewayClient::new(&url)
        .unwrap()
        .follow("c", 0)
        .collect()
        .await;
    let seen: Vec<_> = frames
        .iter()
        .map(|frame| (frame.event.as_str(), frame.id))
        .collect();
    assert_eq!(
        seen,
        [("replay", None), ("act", Some(1)), ("error", Some(2))]
    );
    assert_eq!(
        *script.queries.lock().unwrap(),
        ["cursor=0", "cursor=1-19a8f3c2b10", "cursor=1-19a8f3c2b10"]
    );
}

#[tokio::test]
async fn whoever_watches_is_told_of_cuts_and_of_the_end() {
    let mut responses = vec![
        "retry: 1\nevent: replay\ndata: {\"type\":\"replay\"}\n\n",
        "event: replay\ndata: {\"type\":\"replay\"}\n\n\
         event: end\ndata: {\"type\":\"end\",\"reason\":\"token_expired\",\"reconnect\":false}\n\n",
    ];
    responses.reverse();
    let script = Script {
        responses: Arc::new(Mutex::new(responses)),
        ..Script::default()
    };
    let app = Router::new()
        .route("/api/v1/agent/conversations/c/events/stream", get(stream))
        .with_state(script.clone());
    let client = GatewayClient::new(&serve(app).await).unwrap();
    let told = async |conversation: &str| {
        let updates: Vec<_> = client.watch(conversation, "7-a").collect().await;
        let told = updates.iter().map(|update| match update {
            Update::Frame(frame) => frame.event.clone(),
            Update::Waiting(_) => "waiting".to_owned(),
            Update::Ended(reason) => format!("ended: {reason}"),
            Update::Refused(status) => format!("refused: {status}"),
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(
        told("c").await,
        ["replay", "waiting", "replay", "ended: token_expired"]
    );
    assert_eq!(*script.queries.lock().unwrap(), ["cursor=7-a"; 2]);
    assert_eq!(told("unknown").await, ["refused: 404"]);
}

#[tokio::test]
async fn the_list_is_followed_over_a_cut() {
    let row = |id: &str, second: u32| {
        format!(r#"{{"id":"{id}","updated_at":"2026-11-24T08:00:0{second}.000Z"}}"#)
    };
    let list = |rows: &[String]| {
        let rows = rows.join(",");
        format!("retry: 1\nevent: list\ndata: {{\"type\":\"list\",\"conversations\":[{rows}]}}\n\n")
    };
    let changed = format!(
        "event: conversation_changed\ndata: {{\"type\":\"conversation_changed\",\"conversation\":{}}}\n\n",
        row("a", 3)
    );
    let end = "event: end\ndata: {\"type\":\"end\",\"reason\":\"token_expired\"}\n\n";
    let first = list(&[row("a", 1), row("b", 2)]) + &changed;
    let second = list(&[row("c", 4)]) + end;
    let script = Script {
        responses: Arc::new(Mutex::new(vec![second.leak(), first.leak()])),
        ..Script::default()
    };
    let app = Router::new()
        .route("/api/v1/agent/conversation-list/stream", get(stream))
        .with_state(script.clone());
    let client = GatewayClient::new(&serve(app).await).unwrap();
    let lists: Vec<_> = client.follow_list().collect().await;
    let ids = |list: &Vec<ListedConversation>| {
        list.iter().map(|it| it.id().to_owned()).collect::<Vec<_>>()
    };
    let seen: Vec<_> = lists.iter().map(ids).collect();
    assert_eq!(seen, [vec!["b", "a"], vec!["a", "b"], vec!["c"]]);
    assert_eq!(*script.queries.lock().unwrap(), ["", ""]);
}

/// The bodies of the requests that came.
type Bodies = Arc<Mutex<Vec<Value>>>;

/// Cannot serve two requests, accepts the third, and refuses the others.
async fn not_now(
    State(bodies): State<Bodies>,
    Json(body): Json<Value>,
) -> (StatusCode, [(&'static str, &'static str); 1], Json<Value>) {
    let mut bodies = bodies.lock().unwrap();
    bodies.push(body);
    let status = match bodies.len() {
        1 | 2 => StatusCode::SERVICE_UNAVAILABLE,
        3 => StatusCode::ACCEPTED,
        _ => StatusCode::CONFLICT,
    };
    let said = json!({"message_id": "m1", "title": "No.", "code": "no"});
    (status, [("retry-after", "0")], Json(said))
}

#[tokio::test]
async fn a_message_is_sent_again_while_the_gateway_cannot_take_it() {
    let bodies = Bodies::default();
    let path = "/api/v1/agent/conversations/c/messages";
    let app = Router::new()
        .route(path, post(not_now))
        .with_state(Arc::clone(&bodies));
    let client = GatewayClient::new(&serve(app).await).unwrap();
    assert_eq!(client.submit("c", "hello", None).await.unwrap(), "m1");
    {
        let bodies = bodies.lock().unwrap();
        assert_eq!(bodies.len(), 3, "{bodies:?}");
        // The same message each time, so that it is stored once.
        assert!(bodies[0]["message_id"].is_string(), "{bodies:?}");
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    }
    let refused = client
        .submit_first("c", Some("poet"), "hello", Some("mine"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("409"), "{refused}");
    let first = json!({"content": "hello", "message_id": "mine", "create": {"agent": "poet"}});
    assert_eq!(bodies.lock().unwrap().pop(), Some(first));
    let refused = client.submit("c", "hello", None).await.unwrap_err();
    assert!(refused.to_string().contains("409"), "{refused}");
    assert_eq!(bodies.lock().unwrap().len(), 4, "sent once");
}

/// Gives the claims of a call: it is held, free, and then there is nothing to run.
async fn claims(
    State(bodies): State<Bodies>,
    Json(body): Json<Value>,
) -> (StatusCode, [(&'static str, &'static str); 1], Json<Value>) {
    let mut bodies = bodies.lock().unwrap();
    bodies.push(body);
    let (status, said) = match bodies.len() {
        1 => (StatusCode::CONFLICT, json!({"code": "client_tool_claimed"})),
        2 => (StatusCode::OK, json!({"is_repeated": true})),
        _ => (
            StatusCode::CONFLICT,
            json!({"code": "client_tool_answered"}),
        ),
    };
    (status, [("retry-after", "7")], Json(said))
}

#[tokio::test]
async fn a_call_is_claimed() {
    let bodies = Bodies::default();
    let path = "/api/v1/agent/conversations/c/client-tools/exec_1/claim";
    let app = Router::new()
        .route(path, post(claims))
        .with_state(Arc::clone(&bodies));
    let client = GatewayClient::new(&serve(app).await).unwrap();
    for expected in [
        Claim::Held(Duration::from_secs(7)),
        Claim::Run { is_repeated: true },
        Claim::Over,
    ] {
        let claim = client.claim_client_tool("c", "exec_1", "laptop").await;
        assert_eq!(claim.unwrap(), expected);
    }
    assert_eq!(bodies.lock().unwrap()[0], json!({"claimant": "laptop"}));
}
