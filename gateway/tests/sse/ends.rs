//! How long a stream stays open, and how it ends.

use std::{pin::pin, sync::Arc, time::Duration};

use everturn_gateway::{
    GatewayConfig, GatewayState,
    auth::{Caller, Credential},
    config::Scopes,
    http::{audit::Source, extract::Name},
    live::{Cursor, Feed},
};
use everturn_store::{Access, SqliteStore};
use everturn_stream::{InProcessStream, StreamReader};
use futures::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::{STREAM, announce, data, open, publish};
use crate::support::{TestGateway, ports, store::TestStore};

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
    let served = tokio::time::timeout(Duration::from_mins(2), gateway.serving).await;
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
    let served = tokio::time::timeout(Duration::from_mins(2), gateway.serving).await;
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
async fn a_deletion_ends_streams_at_once_and_purges_the_texts() {
    let config = GatewayConfig {
        poll_interval: Duration::from_secs(3600),
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let log_id = gateway.store.log_of("c").id;
    let mut stream = open(&gateway, STREAM).await;
    publish(&gateway, 1, 0, "secret").await;
    assert_eq!(stream.next().await.unwrap().event, "text_start");
    assert_eq!(gateway.delete("/conversations/c").await.status, 204);
    let end = data(&stream.next().await.unwrap());
    assert_eq!(end["reason"], "conversation_deleted");
    let followed = gateway.stream.follow(&log_id).await.unwrap();
    assert_eq!(followed.open, []);
}

/// A feed of the conversation `c`, from its first event on.
async fn feed_of(store: &TestStore) -> Feed {
    let keys = SqliteStore::open_in_memory().await.unwrap();
    let ports = ports(store, &keys, &InProcessStream::default(), &Arc::default());
    let state = GatewayState::new(ports, GatewayConfig::default());
    let caller = Caller {
        access: Access::tenant("default"),
        scopes: Scopes::all(),
        credential: Credential::Anonymous,
        expires_at: None,
        signed_in_at: None,
        principal: None,
        key_id: None,
        source: Source::default(),
    };
    let conversation = state
        .conversation(&caller, &Name::checked("c".to_owned()).unwrap())
        .await
        .unwrap();
    let feed = state.feed(&caller, &conversation, Cursor::default()).await;
    feed.unwrap()
}

#[tokio::test]
async fn a_replay_joins_its_frames() {
    const EVENTS: usize = 2000;
    let store = TestStore::default();
    store.add("c", "default");
    for _ in 0..EVENTS {
        store.append("c", "m", "act", "{}");
    }
    let mut chunks = pin!(feed_of(&store).await.into_chunks());
    let (mut body, mut count) = (Vec::new(), 0);
    while body.windows(5).filter(|five| five == b"\nid: ").count() < EVENTS {
        body.extend(chunks.next().await.unwrap());
        count += 1;
    }
    assert!(
        count < EVENTS / 20,
        "{count} pieces of {} bytes",
        body.len()
    );
    let text = String::from_utf8(body).unwrap();
    let ids: Vec<usize> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: ")?.split('-').next()?.parse().ok())
        .collect();
    assert_eq!(ids, (1..=EVENTS).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_ends_when_its_credential_does() {
    let store = TestStore::default();
    store.add("c", "default");
    store.append("c", "m", "act", "{}");
    let feed = feed_of(&store).await;
    tokio::time::pause();
    let started = Instant::now();
    let valid = Duration::from_secs(60);
    let feed = feed.until(Box::pin(tokio::time::sleep(valid)));
    let body: Vec<_> = feed.into_chunks().collect().await;
    let body = body.concat();
    let text = std::str::from_utf8(&body).unwrap();
    // Timers are rounded up to milliseconds.
    assert_eq!(started.elapsed().as_secs(), valid.as_secs());
    assert_eq!(
        (
            text.matches("\nid: 1-").count(),
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
