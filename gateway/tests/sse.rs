//! The streams over HTTP.

#![allow(clippy::unwrap_used)]

mod support;

use std::{sync::Arc, time::Duration};

use everturn_gateway::{
    GatewayConfig, GatewayState, Ports,
    auth::{Caller, Credential},
    config::Scopes,
};
use everturn_proto::ids;
use everturn_store::Access;
use everturn_stream::{Announcement, InProcessStream, Part, Piece, StreamWriter, TextKey};
use futures::StreamExt;
use serde_json::{Value, json};
use support::{RecordingTurns, Sse, TestGateway, memory::MemoryStore};
use tokio::time::Instant;

const STREAM: &str = "/conversations/c/events/stream";

/// A stream behind its first frame.
async fn open(gateway: &TestGateway, path: &str) -> Sse {
    let mut stream = Sse::of(gateway.request("GET", path).send().await.unwrap());
    assert_eq!(stream.next().await.unwrap().event, "replay");
    stream
}

fn data(event: &eventsource_stream::Event) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

async fn publish(gateway: &TestGateway, generation: u32, offset: usize, text: &str) {
    let key = TextKey {
        agent_execution_id: "run".to_owned(),
        step: 0,
        part: Part::Text,
    };
    let (message_id, text) = ("m".to_owned(), text.to_owned());
    let piece = Piece {
        message_id,
        key,
        generation,
        offset,
        text,
        is_end: false,
    };
    gateway.stream.publish("c", piece).await.unwrap();
}

async fn announce(gateway: &TestGateway, last_sequence: u32) {
    let sealed = vec![("run".to_owned(), 0)];
    gateway
        .stream
        .announce(
            "c",
            Announcement {
                last_sequence,
                sealed,
            },
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn replays_then_goes_live() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.append(
        "c",
        "m",
        "user_message",
        r#"{"content":"hi","message_id":"m"}"#,
    );
    publish(&gateway, 1, 0, "Hel").await;
    let mut stream = open(&gateway, STREAM).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert_eq!(stream.headers["x-accel-buffering"], "no");
    assert_eq!(stream.headers["cache-control"], "no-cache, no-transform");
    assert!(!stream.headers.contains_key("content-encoding"));
    let first = stream.next().await.unwrap();
    assert_eq!(
        (first.event.as_str(), first.id.as_str()),
        ("user_message", "1")
    );
    assert_eq!(
        first.data,
        concat!(
            r#"{"type":"user_message","conversation_id":"c","sequence_number":1,"#,
            r#""created_at":"2026-01-02T03:04:05.678Z","content":"hi","message_id":"m"}"#
        )
    );
    let start = stream.next().await.unwrap();
    assert_eq!(start.event, "text_start");
    let data: Value = serde_json::from_str(&start.data).unwrap();
    assert_eq!(
        data,
        json!({"type": "text_start", "conversation_id": "c", "message_id": "m", "agent_execution_id": "run",
               "step": 0, "part": "text", "generation": 1, "text": "Hel"})
    );
    publish(&gateway, 1, 3, "lo").await;
    let delta: Value = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
    assert_eq!(
        (&delta["type"], &delta["offset"], &delta["text"]),
        (&json!("text_delta"), &json!(3), &json!("lo"))
    );
    publish(&gateway, 2, 0, "Good").await;
    assert_eq!(
        stream.names(1).await,
        ["text_start 1"],
        "the library keeps the last id; the frame has none"
    );
    let sealing =
        r#"{"content":"Good day","agent_execution_id":"run","step":0,"message_id":"msg_a"}"#;
    let last = gateway.store.append("c", "m", "assistant_message", sealing);
    announce(&gateway, last).await;
    gateway
        .store
        .append("c", "m", "complete", r#"{"agent_execution_id":"run"}"#);
    // The last one was announced by nobody.
    assert_eq!(stream.names(2).await, ["assistant_message 2", "complete 3"]);
}

#[tokio::test]
async fn continues_from_the_cursor() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    for _ in 0..500 {
        gateway.store.append("c", "m", "act", "{}");
    }
    let mut all = open(&gateway, STREAM).await;
    for sequence in 1..=500 {
        assert_eq!(all.next().await.unwrap().id, sequence.to_string());
    }
    let mut by_query = open(&gateway, &format!("{STREAM}?cursor=498")).await;
    assert_eq!(by_query.names(2).await, ["act 499", "act 500"]);
    let request = gateway
        .request("GET", &format!("{STREAM}?cursor=3"))
        .header("Last-Event-ID", "499");
    let mut by_header = Sse::of(request.send().await.unwrap());
    let replay = by_header.next().await.unwrap();
    assert_eq!((replay.event.as_str(), replay.id.as_str()), ("replay", ""));
    let expected = json!({"type": "replay", "conversation_id": "c", "from_sequence": 500, "last_sequence": 500});
    assert_eq!(data(&replay), expected);
    assert_eq!(by_header.names(1).await, ["act 500"]);
    gateway
        .get(&format!("{STREAM}?cursor=x"))
        .await
        .assert_problem(400, "invalid_parameter");
    let bad = gateway
        .request("GET", STREAM)
        .header("Last-Event-ID", "evt_3")
        .send()
        .await
        .unwrap();
    support::Answer::of(bad)
        .await
        .assert_problem(400, "invalid_parameter");
}

#[tokio::test]
async fn several_devices_see_the_same() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let mut devices = Vec::new();
    for _ in 0..5 {
        devices.push(open(&gateway, STREAM).await);
    }
    for _ in 0..20 {
        gateway.store.append("c", "m", "act", "{}");
    }
    announce(&gateway, 20).await;
    let expected: Vec<_> = (1..=20).map(|sequence| format!("act {sequence}")).collect();
    for device in &mut devices {
        assert_eq!(device.names(20).await, expected);
    }
}

#[tokio::test]
async fn idle_streams_are_kept_open_by_comments() {
    let config = GatewayConfig {
        heartbeat: Duration::from_millis(30),
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let mut response = gateway.request("GET", STREAM).send().await.unwrap();
    let mut text = String::new();
    while text.matches(": still here\n\n").count() < 3 {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    let retry: u64 = text
        .strip_prefix("retry: ")
        .unwrap()
        .split('\n')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1000..=3000).contains(&retry), "{text}");
}

#[tokio::test]
async fn a_gateway_stops_in_order() {
    let millis = Duration::from_millis;
    let config = GatewayConfig {
        drain: millis(300),
        retry: millis(100)..=millis(200),
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(open(&gateway, STREAM).await);
    }
    gateway.shutdown.cancel();
    // It says so, and refuses new streams, while those it has go on.
    gateway
        .get("/readyz")
        .await
        .assert_problem(503, "shutting_down");
    let refused = gateway.get(STREAM).await;
    refused.assert_problem(503, "shutting_down");
    assert!(!refused.header("retry-after").is_empty());
    gateway.store.append("c", "m", "act", "{}");
    announce(&gateway, 1).await;
    let mut delays = Vec::new();
    for stream in &mut streams {
        assert_eq!(stream.names(1).await, ["act 1"]);
    }
    for stream in &mut streams {
        let reconnect = stream.next().await.unwrap();
        assert_eq!(
            (reconnect.event.as_str(), reconnect.retry.is_some()),
            ("reconnect", true)
        );
        delays.push(data(&reconnect)["delay_ms"].as_u64().unwrap());
        assert!(stream.next().await.is_none());
    }
    assert!(
        delays.iter().all(|delay| (100..=200).contains(delay)),
        "{delays:?}"
    );
    delays.dedup();
    assert!(delays.len() > 1, "not all at once");
    let served = tokio::time::timeout(Duration::from_secs(30), gateway.serving).await;
    served.expect("serving goes on").unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_that_nobody_reads_does_not_hold_the_gateway() {
    let config = GatewayConfig {
        drain: Duration::ZERO,
        shutdown_grace: Duration::from_millis(200),
        reader_buffer: 1 << 30,
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let stuck = open(&gateway, STREAM).await;
    let large = json!({"content": "x".repeat(1 << 20)}).to_string();
    for sequence in 1..=16 {
        gateway.store.append("c", "m", "act", &large);
        announce(&gateway, sequence).await;
    }
    gateway.shutdown.cancel();
    let served = tokio::time::timeout(Duration::from_secs(30), gateway.serving).await;
    served.expect("serving goes on").unwrap().unwrap();
    drop(stuck);
}

#[tokio::test]
async fn readers_are_told_when_there_is_nothing_to_come_back_for() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let mut stream = open(&gateway, STREAM).await;
    gateway.store.remove("c");
    let end = stream.next().await.unwrap();
    assert_eq!(end.event, "end");
    assert_eq!(
        data(&end),
        json!({"type": "end", "reason": "conversation_deleted", "reconnect": false})
    );
    assert!(stream.next().await.is_none());
    gateway
        .get(STREAM)
        .await
        .assert_problem(404, "conversation_not_found");
}

#[tokio::test]
async fn a_stream_ends_when_its_credential_does() {
    let keys = everturn_store::SqliteStore::open_in_memory().await.unwrap();
    tokio::time::pause();
    let store = MemoryStore::default();
    store.add("c", "default");
    store.append("c", "m", "act", "{}");
    let ports = Ports {
        events: Arc::new(store.clone()),
        conversations: Arc::new(store.clone()),
        executions: Arc::new(store.clone()),
        outside: Arc::new(store.clone()),
        results: Arc::new(store.clone()),
        keys: Arc::new(keys),
        stream: Arc::new(InProcessStream::default()),
        turns: Arc::new(RecordingTurns::default()),
    };
    let state = GatewayState::new(ports, GatewayConfig::default());
    let caller = Caller {
        access: Access::tenant("default"),
        scopes: Scopes::all(),
        credential: Credential::Anonymous,
        expires_at: None,
    };
    let conversation = state.conversation(&caller, "c").await.unwrap();
    let started = Instant::now();
    let valid = Duration::from_secs(60);
    let feed = state
        .feed(&caller, &conversation, 0)
        .unwrap()
        .until(Box::pin(tokio::time::sleep(valid)));
    let body: Vec<_> = feed.into_chunks().collect().await;
    let body = body.concat();
    let text = std::str::from_utf8(&body).unwrap();
    // Timers are rounded up to milliseconds.
    assert_eq!(started.elapsed().as_secs(), valid.as_secs());
    assert_eq!(
        (
            text.matches("\nid: 1\n").count(),
            text.matches(": still here").count()
        ),
        (1, 3),
        "{text}"
    );
    let end =
        "event: end\ndata: {\"type\":\"end\",\"reason\":\"token_expired\",\"reconnect\":false}\n\n";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn streams_are_counted_and_given_back() {
    let gateway = TestGateway::with(GatewayConfig {
        max_streams: 1,
        ..GatewayConfig::default()
    })
    .await;
    gateway.store.add("c", "default");
    let held = open(&gateway, STREAM).await;
    gateway
        .get(STREAM)
        .await
        .assert_problem(503, "too_many_streams");
    drop(held);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if gateway
            .request("GET", STREAM)
            .send()
            .await
            .unwrap()
            .status()
            == 200
        {
            assert_eq!(
                gateway.turns.take(),
                [""; 0],
                "closing a stream never touches the turn"
            );
            return;
        }
    }
    panic!("the place was not given back");
}

/// Plays the turn of `message_id`, with a sub-agent and another message in between.
fn play(gateway: &TestGateway, conversation_id: &str, message_id: &str) {
    let run = ids::root_execution_id(conversation_id, message_id);
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
    let mut chat = Sse::of(
        gateway
            .request("POST", "/chat")
            .json(&body)
            .send()
            .await
            .unwrap(),
    );
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
        [format!("submit {conversation_id} {message_id} queue")]
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
    gateway.store.take(message_id, message_id, false);
    let body = json!({"message": "hi", "message_id": "mine", "conversation_id": conversation_id});
    let mut again = Sse::of(
        gateway
            .request("POST", "/chat")
            .json(&body)
            .send()
            .await
            .unwrap(),
    );
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
