//! The Redis stream when Redis is killed, flushed, paused, or cuts connections; and what it leaves behind.

#![allow(clippy::unwrap_used)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_proto::SealedStep;
use everturn_stream::{
    Announcement, Following, Item, OpenText, Part, Piece, Published, RedisStream,
    RedisStreamOptions, StreamReader, StreamWriter, TextKey, TextWriter,
};
use everturn_test_servers::redis::Redis;
use tokio::time::{sleep, timeout};

use Published::{Accepted, Gap, Refused};

fn stream(server: &Redis) -> RedisStream {
    stream_with(server, RedisStreamOptions::default())
}

fn stream_with(server: &Redis, options: RedisStreamOptions) -> RedisStream {
    RedisStream::connect(&server.url(), options).unwrap()
}

/// Patient: this machine has 2 cores, and compilers run on them.
fn patient() -> RedisStreamOptions {
    let command_timeout = Duration::from_secs(10);
    RedisStreamOptions {
        command_timeout,
        follow_timeout: command_timeout,
        ..RedisStreamOptions::default()
    }
}

fn key(execution: &str, step: u32) -> TextKey {
    TextKey {
        agent_execution_id: execution.to_owned(),
        step,
        part: Part::Text,
    }
}

fn piece(key: &TextKey, generation: u32, offset: usize, text: &str) -> Piece {
    let (key, text) = (key.clone(), text.to_owned());
    Piece {
        message_id: "m".to_owned(),
        key,
        generation,
        offset,
        text,
        is_end: false,
    }
}

fn sealing(execution: &str, step: u32) -> Announcement {
    Announcement {
        last_sequence: 1,
        sealed: vec![SealedStep {
            agent_execution_id: execution.to_owned(),
            step,
        }],
    }
}

/// The next item; `None` when the follower was cut.
async fn next(following: &mut Following) -> Option<Item> {
    timeout(Duration::from_secs(10), following.items.recv())
        .await
        .expect("no item in 10 s")
}

/// Follows as soon as that is possible.
async fn follow(stream: &RedisStream) -> Following {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match stream.follow("c").await {
            Ok(following) => return following,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

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
            let item = timeout(Duration::from_secs(20), following.items.recv())
                .await
                .expect("nothing in 20 s");
            match item {
                Some(Item::Start(text)) => screen = Some(text),
                Some(Item::Delta(piece)) => {
                    let held = screen
                        .as_mut()
                        .expect("a delta of a text that never started");
                    assert_eq!(
                        (held.generation, held.text.len()),
                        (piece.generation, piece.offset)
                    );
                    held.text.push_str(&piece.text);
                    held.is_ended |= piece.is_end;
                }
                Some(Item::Announced(_)) => {}
                None => break,
            }
        }
    }
}

/// Pushes words for three seconds while `fault` happens; two gateways read.
async fn live_through(server: &Redis, fault: impl AsyncFnOnce(&Redis)) {
    let worker = Arc::new(stream(server));
    let gateways = [stream(server), stream(server)];
    let readers: Vec<_> = gateways
        .iter()
        .cloned()
        .map(|gateway| tokio::spawn(read_to_the_end(gateway)))
        .collect();
    let writer = TextWriter::new(worker.clone(), "c", "m", "run", 0, 1);
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
        stream.publish("c", piece(&text, 1, 0, "a")).await.unwrap(),
        Accepted
    );
    let mut following = stream.follow("c").await.unwrap();
    server.pause().await;
    let started = Instant::now();
    assert!(stream.publish("c", piece(&text, 1, 1, "b")).await.is_err());
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
    server.resume().await;
    server.kill().await;
    // What was frozen may have been done before the end; the end is what tells the follower.
    while next(&mut following).await.is_some() {}
    // One call in a while pays for trying; the others fail at once.
    let started = Instant::now();
    for _ in 0..1000 {
        assert!(stream.publish("c", piece(&text, 1, 1, "b")).await.is_err());
        assert!(stream.announce("c", sealing("run", 0)).await.is_err());
        assert!(stream.follow("c").await.is_err());
    }
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );

    server.start_again().await;
    let following = follow(&stream).await;
    assert!(following.open.is_empty());
    while stream.publish("c", piece(&text, 1, 1, "b")).await.is_err() {
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
            .publish("c", piece(&key("run", 0), 1, 0, "a"))
            .await
            .unwrap_err(),
        stream.follow("c").await.unwrap_err(),
        RedisStream::connect("redis://someone:secret@[", RedisStreamOptions::default())
            .unwrap_err(),
    ] {
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn fence_holds_after_everything_was_lost() {
    let server = Redis::start().await;
    let (zombie, worker, gateway) = (
        stream_with(&server, patient()),
        stream_with(&server, patient()),
        stream_with(&server, patient()),
    );
    let text = key("run", 0);
    assert_eq!(
        zombie
            .publish("c", piece(&text, 1, 0, "old"))
            .await
            .unwrap(),
        Accepted
    );
    assert_eq!(
        worker
            .publish("c", piece(&text, 2, 0, "new"))
            .await
            .unwrap(),
        Accepted
    );
    assert_eq!(
        zombie.publish("c", piece(&text, 1, 3, "er")).await.unwrap(),
        Refused
    );
    let mut reader = gateway.follow("c").await.unwrap();

    server.command("FLUSHALL").await.unwrap();
    assert_eq!(
        zombie.publish("c", piece(&text, 1, 3, "er")).await.unwrap(),
        Gap,
        "its text is unknown"
    );
    // The hole that `redis/known.rs` names: nobody that Redis still knows of has seen generation 2. Whoever has
    // seen it is not shown the older one, nor is who comes after.
    assert_eq!(
        zombie
            .publish("c", piece(&text, 1, 0, "older"))
            .await
            .unwrap(),
        Accepted
    );
    assert!(gateway.follow("c").await.unwrap().open.is_empty());
    assert_eq!(
        worker.publish("c", piece(&text, 1, 5, "!")).await.unwrap(),
        Refused,
        "this process knows better"
    );
    assert_eq!(
        zombie.publish("c", piece(&text, 1, 5, "!")).await.unwrap(),
        Refused,
        "and has told Redis"
    );

    server.command("FLUSHALL").await.unwrap();
    assert_eq!(
        worker.publish("c", piece(&text, 2, 3, "er")).await.unwrap(),
        Gap
    );
    assert_eq!(
        zombie
            .publish("c", piece(&text, 1, 0, "older"))
            .await
            .unwrap(),
        Refused,
        "one piece is enough"
    );
    assert_eq!(
        worker
            .publish("c", piece(&text, 2, 0, "newer"))
            .await
            .unwrap(),
        Accepted
    );
    let mut shown = None;
    while shown.is_none() {
        match next(&mut reader).await.expect("a flush cuts nobody") {
            Item::Start(text) => shown = Some((text.generation, text.text)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(shown, Some((2, "newer".to_owned())));

    worker.announce("c", sealing("run", 0)).await.unwrap();
    server.command("FLUSHALL").await.unwrap();
    assert_eq!(
        worker
            .publish("c", piece(&text, 3, 0, "sealed"))
            .await
            .unwrap(),
        Refused
    );
    assert_eq!(
        zombie
            .publish("c", piece(&text, 3, 0, "sealed"))
            .await
            .unwrap(),
        Refused
    );
}

#[tokio::test]
async fn fence_outlives_its_text() {
    let server = Redis::start().await;
    let text_ttl = Duration::from_millis(100);
    let [zombie, worker] = [0, 1].map(|_| {
        stream_with(
            &server,
            RedisStreamOptions {
                text_ttl,
                ..patient()
            },
        )
    });
    let text = key("run", 0);
    worker
        .publish("c", piece(&text, 2, 0, "new"))
        .await
        .unwrap();
    sleep(text_ttl * 2).await;
    assert!(worker.follow("c").await.unwrap().open.is_empty());
    assert_eq!(
        zombie
            .publish("c", piece(&text, 1, 0, "old"))
            .await
            .unwrap(),
        Refused
    );
}

#[tokio::test]
async fn a_message_that_went_missing_cuts_the_follower() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    let text = key("run", 0);
    stream.publish("c", piece(&text, 1, 0, "a")).await.unwrap();
    let mut following = stream.follow("c").await.unwrap();
    // As if one had been published that never came.
    server
        .command("HINCRBY everturn:1:{c}:open #number 1")
        .await
        .unwrap();
    stream.publish("c", piece(&text, 1, 1, "b")).await.unwrap();
    assert_eq!(next(&mut following).await, None);
    let mut following = stream.follow("c").await.unwrap();
    assert_eq!(following.open[0].text, "ab");
    // Somebody else's message on the channel.
    server
        .command("PUBLISH everturn:1:{c} hello")
        .await
        .unwrap();
    assert_eq!(next(&mut following).await, None);
}

#[tokio::test]
async fn one_subscriber_connection_serves_all_followers_of_a_process() {
    let server = Redis::start().await;
    let options = || RedisStreamOptions {
        sweep_interval: Duration::from_millis(50),
        ..patient()
    };
    let gateways = [0, 1, 2].map(|_| stream_with(&server, options()));
    let mut followings = Vec::new();
    for gateway in &gateways {
        for number in 0..40 {
            followings.push(gateway.follow(&format!("c{}", number % 20)).await.unwrap());
        }
    }
    let worker = stream(&server);
    for number in 0..20 {
        worker
            .publish(&format!("c{number}"), piece(&key("run", 0), 1, 0, "hello"))
            .await
            .unwrap();
    }
    for following in &mut followings {
        assert!(matches!(next(following).await, Some(Item::Start(text)) if text.text == "hello"));
    }
    let connections = server
        .command("CLIENT LIST TYPE pubsub")
        .await
        .unwrap()
        .lines()
        .filter(|line| line.contains(" sub=20 "))
        .count();
    assert_eq!(connections, gateways.len());
    followings.truncate(1);
    while server.command("PUBSUB CHANNELS *").await.unwrap() != "*1" {
        sleep(Duration::from_millis(20)).await;
    }
    // Whoever comes back is subscribed again.
    let mut back = gateways[0].follow("c7").await.unwrap();
    worker
        .publish("c7", piece(&key("run", 0), 1, 5, "!"))
        .await
        .unwrap();
    assert!(matches!(next(&mut back).await, Some(Item::Delta(_))));
    drop((followings, back, gateways));
    while server
        .command("CLIENT LIST TYPE pubsub")
        .await
        .unwrap()
        .contains("sub=")
    {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn every_key_expires_and_is_in_the_slot_of_its_conversation() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    stream
        .publish("one", piece(&key("run", 0), 1, 0, "a"))
        .await
        .unwrap();
    stream
        .publish("one", piece(&key("run", 0), 2, 0, "b"))
        .await
        .unwrap();
    stream
        .publish("one", piece(&key("run", 0), 2, 1, "b"))
        .await
        .unwrap();
    stream
        .publish("one", piece(&key("run", 1), 3, 9, "gap"))
        .await
        .unwrap();
    stream
        .publish("one", piece(&key("run", 1), 3, 0, "c"))
        .await
        .unwrap();
    stream.announce("one", sealing("run", 1)).await.unwrap();
    stream.announce("two", sealing("other", 0)).await.unwrap();
    stream
        .announce(
            "three",
            Announcement {
                last_sequence: 1,
                sealed: Vec::new(),
            },
        )
        .await
        .unwrap();
    let odd = "EVAL \"for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) < 1 or \
               not string.find(key, '^everturn:1:{%l+}:') then return key end end return 'none'\" 0";
    assert_eq!(
        (
            server.command(odd).await.unwrap().as_str(),
            server.keys().await
        ),
        ("none", 6)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_turns_leave_nothing_behind() {
    let server = Redis::start().await;
    let ttl = Duration::from_millis(1500);
    let options = RedisStreamOptions {
        text_ttl: ttl,
        sealed_ttl: ttl,
        fence_ttl: ttl,
        ..patient()
    };
    let stream = Arc::new(stream_with(&server, options));
    // Connections, scripts and Redis' own tables are there before it is measured.
    turn(&stream, "warm-up").await;
    sleep(ttl * 2).await;
    let (keys, before) = (server.keys().await, server.info("used_memory").await);
    assert_eq!(keys, 0);
    let workers: Vec<_> = (0..20)
        .map(|worker| {
            let stream = Arc::clone(&stream);
            tokio::spawn(async move {
                for number in 0..50 {
                    turn(&stream, &format!("c_{worker}_{number}")).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    sleep(ttl * 2).await;
    // Redis looks for expired keys ten times a second, and takes its time.
    let until = Instant::now() + Duration::from_secs(20);
    while server.keys().await > 0 {
        assert!(Instant::now() < until, "keys are left");
        sleep(Duration::from_millis(100)).await;
    }
    let after = server.info("used_memory").await;
    assert!(
        after < before + 200_000,
        "{before} bytes before, {after} after"
    );
}

/// A turn of two steps, the first one tried twice, that one reader follows. One turn in a while loses its last
/// announcement.
async fn turn(stream: &RedisStream, conversation_id: &str) {
    let mut following = stream.follow(conversation_id).await.unwrap();
    let text = "word ".repeat(200);
    for (generation, step) in [(1, 0), (2, 0), (3, 1)] {
        let key = key("run", step);
        assert_eq!(
            stream
                .publish(conversation_id, piece(&key, generation, 0, &text))
                .await
                .unwrap(),
            Accepted
        );
        assert_eq!(
            stream
                .publish(conversation_id, piece(&key, generation, text.len(), &text))
                .await
                .unwrap(),
            Accepted
        );
        let is_lost = step == 1 && conversation_id.ends_with('7');
        if generation > 1 && !is_lost {
            stream
                .announce(conversation_id, sealing("run", step))
                .await
                .unwrap();
        }
    }
    assert!(next(&mut following).await.is_some());
}
