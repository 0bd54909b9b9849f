//! The streams over HTTP.

mod chat;
mod ends;
mod lists;

use everturn_proto::SealedStep;
use everturn_stream::{Announcement, StreamWriter};
use serde_json::{Value, json};

use crate::support::{
    Sse, TestGateway,
    world::{key, piece},
};

const STREAM: &str = "/conversations/c/events/stream";

/// Opens a stream, and reads its first frame.
async fn open(gateway: &TestGateway, path: &str) -> Sse {
    let mut stream = Sse::of(gateway.request("GET", path).send().await.unwrap());
    assert_eq!(stream.next().await.unwrap().event, "replay");
    stream
}

fn data(event: &eventsource_stream::Event) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

async fn publish(gateway: &TestGateway, generation: u32, offset: usize, text: &str) {
    let piece = piece(key("run", 0), generation, offset, text);
    let log = gateway.store.log_of("c").id;
    gateway.stream.publish(&log, piece).await.unwrap();
}

async fn announce(gateway: &TestGateway, last_sequence: u32) {
    let sealed = vec![SealedStep {
        agent_execution_id: "run".to_owned(),
        step: 0,
    }];
    let announcement = Announcement {
        last_sequence,
        sealed,
    };
    let log = gateway.store.log_of("c").id;
    gateway.stream.announce(&log, announcement).await.unwrap();
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
    crate::support::Answer::of(bad)
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
