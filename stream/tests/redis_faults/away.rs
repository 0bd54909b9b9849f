//! A Redis that is killed, flushed, frozen or cut off: texts come through whole, and nothing waits for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_stream::{
    Item, OpenText, Part, Published, RedisStream, RedisStreamOptions, StreamReader, StreamWriter,
    TextWriter,
};
use everturn_test_servers::redis::Redis;
use tokio::time::{sleep, timeout};

use super::{follow, stream, stream_with};
use crate::support::{append, key, next, piece, publish, sealing};

/// Reads one text as a gateway does, following again whenever it is cut, until the text has ended.
async fn read_to_the_end(stream: RedisStream) -> OpenText {
    let mut screen: Option<OpenText> = None;
    loop {
        let mut following = follow(&stream).await;
        if let Some(open) = following.open.first() {
            screen = Some(open.clone());
        }
        loop {
            if let Some(text) = screen.as_ref().filter(|text| text.is_ended) {
                return text.clone();
            }
            let item = timeout(Duration::from_mins(2), following.items.recv())
                .await
                .expect("nothing in 20 s");
            match item {
                Some(Item::Start(text)) => screen = Some(text),
                Some(Item::Delta(piece)) => append(screen.as_mut(), &piece),
                Some(Item::Announced(_) | Item::Notice(_)) => {}
                None => break,
            }
        }
    }
}

/// Pushes words for three seconds while `fault` happens. Two gateways read them.
async fn live_through(server: &Redis, fault: impl AsyncFnOnce(&Redis)) {
    let worker = Arc::new(stream(server));
    let gateways = [stream(server), stream(server)];
    let readers: Vec<_> = gateways
        .iter()
        .cloned()
        .map(|gateway| tokio::spawn(read_to_the_end(gateway)))
        .collect();
    let writer = TextWriter::new(worker.clone(), "c".into(), "m", "run", 0, 1);
    let (mut said, mut slowest) = (String::new(), Duration::ZERO);
    let saying = async {
        for number in 0..600 {
            let word = format!("wörd {number} ");
            let started = Instant::now();
            writer.push(Part::Text, &word);
            slowest = slowest.max(started.elapsed());
            said.push_str(&word);
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::join!(saying, async {
        sleep(Duration::from_millis(500)).await;
        fault(server).await;
    });
    assert!(
        slowest < Duration::from_millis(200),
        "the model waited {slowest:?} for Redis"
    );
    // The time a writer that was told of errors may pause, and the stream may wait before it tries again.
    sleep(Duration::from_secs(3)).await;
    writer.finish().await;
    for reader in readers {
        let text = reader.await.unwrap();
        assert_eq!((text.text.as_str(), text.generation), (said.as_str(), 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_lives_through_a_killed_redis() {
    live_through(&Redis::start().await, async |server| {
        server.kill().await;
        sleep(Duration::from_millis(700)).await;
        server.start_again().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_lives_through_a_flushed_redis() {
    live_through(&Redis::start().await, async |server| {
        for _ in 0..5 {
            assert_eq!(server.command("FLUSHALL").await.unwrap(), "+OK");
            sleep(Duration::from_millis(200)).await;
        }
        server.command("SCRIPT FLUSH").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_lives_through_a_frozen_redis() {
    live_through(&Redis::start().await, async |server| {
        server.pause().await;
        sleep(Duration::from_millis(1500)).await;
        server.resume().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_lives_through_cut_connections_and_a_slow_redis() {
    live_through(&Redis::start().await, async |server| {
        server.command("CLIENT KILL TYPE pubsub").await.unwrap();
        sleep(Duration::from_millis(200)).await;
        server.command("CLIENT PAUSE 300").await.unwrap();
        sleep(Duration::from_millis(400)).await;
        server
            .command("CLIENT KILL TYPE normal SKIPME yes")
            .await
            .unwrap();
        sleep(Duration::from_millis(200)).await;
        server.command("CLIENT PAUSE 1200 WRITE").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_away_slows_nothing() {
    let server = Redis::start().await;
    let options = RedisStreamOptions::default();
    let (limit, text) = (
        options.command_timeout + Duration::from_millis(400),
        key("run", 0),
    );
    let stream = stream_with(&server, options);
    assert_eq!(
        publish(&stream, piece(&text, 1, 0, "a")).await,
        Published::Accepted
    );
    let mut following = stream.follow(&"c".into()).await.unwrap();
    server.pause().await;
    let started = Instant::now();
    assert!(
        stream
            .publish(&"c".into(), piece(&text, 1, 1, "b"))
            .await
            .is_err()
    );
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
    server.resume().await;
    server.kill().await;
    // What was frozen may have been done before the end; the end is what tells the follower.
    while next(&mut following.items).await.is_some() {}
    // One call in a while pays for trying; the others fail at once.
    let started = Instant::now();
    for _ in 0..1000 {
        assert!(
            stream
                .publish(&"c".into(), piece(&text, 1, 1, "b"))
                .await
                .is_err()
        );
        assert!(
            stream
                .announce(&"c".into(), sealing("run", 0))
                .await
                .is_err()
        );
        assert!(stream.follow(&"c".into()).await.is_err());
    }
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );

    server.start_again().await;
    let following = follow(&stream).await;
    assert!(following.open.is_empty());
    while stream
        .publish(&"c".into(), piece(&text, 1, 1, "b"))
        .await
        .is_err()
    {
        assert!(started.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_process_starts_without_redis() {
    let url = "redis://someone:secret@127.0.0.1:1";
    let stream = RedisStream::connect(url, RedisStreamOptions::default()).unwrap();
    assert!(!format!("{stream:?}").contains("secret"));
    for error in [
        stream
            .publish(&"c".into(), piece(&key("run", 0), 1, 0, "a"))
            .await
            .unwrap_err(),
        stream.follow(&"c".into()).await.unwrap_err(),
        RedisStream::connect("redis://someone:secret@[", RedisStreamOptions::default())
            .unwrap_err(),
    ] {
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}
