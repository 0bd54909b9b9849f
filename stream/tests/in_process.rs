//! The in-process stream: what every back end must do, and that it forgets.

#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

mod conformance;
mod support;

use std::{sync::Arc, time::Duration};

use everturn_stream::{
    InProcessStream, Piece, Published, StreamOptions, StreamReader, StreamWriter,
};

use self::support::{key, news, piece, publish, sealing};

struct InProcess;

impl conformance::Backend for InProcess {
    type Stream = InProcessStream;
    const CASES: u32 = 200;

    async fn fresh(&self, options: StreamOptions) -> Arc<InProcessStream> {
        Arc::new(InProcessStream::new(options))
    }
}

conformance_suite!(InProcess);

fn first_piece() -> Piece {
    piece(&key("run", 0), 1, 0, "x")
}

#[tokio::test(start_paused = true)]
async fn idle_conversations_are_forgotten() {
    let stream = InProcessStream::default();
    stream
        .publish(&"written".into(), first_piece())
        .await
        .unwrap();
    stream.announce(&"announced".into(), news()).await.unwrap();
    drop(stream.follow(&"left".into()).await.unwrap());
    let mut following = stream.follow(&"followed".into()).await.unwrap();
    assert_eq!(stream.conversations(), 4);
    tokio::time::advance(StreamOptions::default().ttl + Duration::from_secs(1)).await;
    assert_eq!(stream.conversations(), 1);
    // Whoever stays is served still.
    stream
        .publish(&"followed".into(), first_piece())
        .await
        .unwrap();
    assert!(following.items.recv().await.is_some());
    drop(following);
    tokio::time::advance(StreamOptions::default().ttl * 2).await;
    assert_eq!(stream.conversations(), 0);
}

#[tokio::test(start_paused = true)]
async fn conversations_are_bounded() {
    let stream = InProcessStream::new(StreamOptions {
        max_conversations: 10,
        ..StreamOptions::default()
    });
    let _followed = stream.follow(&"followed".into()).await.unwrap();
    for number in 0..100 {
        stream
            .publish(&format!("c{number}").into(), first_piece())
            .await
            .unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(stream.conversations() <= 10);
    }
    let later = Piece {
        offset: 1,
        ..first_piece()
    };
    assert_eq!(
        stream.publish(&"c99".into(), later.clone()).await.unwrap(),
        Published::Accepted,
        "the newest are kept"
    );
    assert_eq!(
        stream.publish(&"c0".into(), later).await.unwrap(),
        Published::Gap
    );

    let full = InProcessStream::new(StreamOptions {
        max_conversations: 1,
        ..StreamOptions::default()
    });
    let _followed = full.follow(&"followed".into()).await.unwrap();
    assert!(full.publish(&"c".into(), first_piece()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn remembered_steps_and_generations_are_bounded() {
    let stream = InProcessStream::new(StreamOptions {
        max_open_texts: 1,
        max_remembered: 2,
        ..StreamOptions::default()
    });
    for step in [0, 1, 0, 2] {
        let log = "c".into();
        stream.announce(&log, sealing("run", step)).await.unwrap();
    }
    for (step, published) in [
        (0, Published::Refused),
        (1, Published::Accepted),
        (2, Published::Refused),
    ] {
        let published_now = publish(&stream, piece(&key("run", step), 1, 0, "x")).await;
        assert_eq!(published_now, published, "step {step}");
    }
    for agent_execution in ["a", "b", "a", "c"] {
        publish(&stream, piece(&key(agent_execution, 0), 2, 0, "x")).await;
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    for (agent_execution, published) in [("a", Published::Refused), ("b", Published::Accepted)] {
        let published_now = publish(&stream, piece(&key(agent_execution, 0), 1, 0, "x")).await;
        assert_eq!(published_now, published, "{agent_execution}");
    }
}

#[tokio::test]
async fn clones_share_one_stream() {
    let stream = InProcessStream::default();
    let mut following = stream.clone().follow(&"c".into()).await.unwrap();
    stream.publish(&"c".into(), first_piece()).await.unwrap();
    assert!(following.items.recv().await.is_some());
}
