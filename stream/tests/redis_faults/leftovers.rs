//! What is left in Redis when turns have ended: nothing, after some time (invariant 10, nothing grows without a bound).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_proto::LogId;
use everturn_stream::{Published, RedisStream, RedisStreamOptions, StreamReader, StreamWriter};
use everturn_test_servers::redis::Redis;
use tokio::time::sleep;

use super::{patient, stream_with};
use crate::support::{key, news, next, piece, sealing};

#[tokio::test]
async fn every_key_expires_and_is_in_the_slot_of_its_conversation() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    for (step, generation, offset, text) in [
        (0, 1, 0, "a"),
        (0, 2, 0, "b"),
        (0, 2, 1, "b"),
        (1, 3, 9, "gap"),
        (1, 3, 0, "c"),
    ] {
        let piece = piece(&key("run", step), generation, offset, text);
        stream.publish(&"one".into(), piece).await.unwrap();
    }
    stream
        .announce(&"one".into(), sealing("run", 1))
        .await
        .unwrap();
    stream
        .announce(&"two".into(), sealing("other", 0))
        .await
        .unwrap();
    stream.announce(&"three".into(), news()).await.unwrap();
    let odd = "EVAL \"for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) < 1 or \
               not string.find(key, '^everturn:3:{%l+}:') then return key end end return 'none'\" 0";
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
    // It shrinks the buffers of clients and its own tables in the same way. What stays are fewer than 200 bytes a turn.
    loop {
        let after = server.info("used_memory").await;
        if after < before + 200_000 {
            break;
        }
        assert!(
            Instant::now() < until,
            "{before} bytes before, {after} after"
        );
        sleep(Duration::from_millis(100)).await;
    }
}

/// A turn of two steps, the first one tried twice, that one reader follows. One turn in a while loses its last
/// announcement.
async fn turn(stream: &RedisStream, conversation_id: &str) {
    let log = LogId::from(conversation_id);
    let mut following = stream.follow(&log).await.unwrap();
    let text = "word ".repeat(200);
    for (generation, step) in [(1, 0), (2, 0), (3, 1)] {
        let key = key("run", step);
        assert_eq!(
            stream
                .publish(&log, piece(&key, generation, 0, &text))
                .await
                .unwrap(),
            Published::Accepted
        );
        assert_eq!(
            stream
                .publish(&log, piece(&key, generation, text.len(), &text))
                .await
                .unwrap(),
            Published::Accepted
        );
        let is_lost = step == 1 && conversation_id.ends_with('7');
        if generation > 1 && !is_lost {
            stream.announce(&log, sealing("run", step)).await.unwrap();
        }
    }
    assert!(next(&mut following.items).await.is_some());
}
