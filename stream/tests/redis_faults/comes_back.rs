//! A Redis that is away, or comes back, while thousands want to write and to follow.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_stream::{RedisStream, RedisStreamOptions, StreamReader, StreamWriter};
use everturn_test_servers::redis::Redis;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{patient, stream_with};
use crate::support::{key, piece};

const CALLERS: usize = 500;

/// Publishes until it succeeds, as a text writer does.
async fn write(stream: RedisStream, number: usize) {
    let log = format!("w{number}").into();
    while stream
        .publish(&log, piece(&key("run", 0), 1, 0, "text"))
        .await
        .is_err()
    {
        stream.may_publish().await;
    }
}

/// Follows until it succeeds, as a tail does.
async fn read(stream: RedisStream, number: usize) {
    let log = format!("r{number}").into();
    while stream.follow(&log).await.is_err() {
        stream.may_follow().await;
    }
}

fn callers(stream: &RedisStream) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        callers.spawn(write(stream.clone(), number));
        callers.spawn(read(stream.clone(), number));
    }
    callers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_away_gets_few_tries_however_many_wait() {
    // It takes every connection, and ends it at once.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(connection);
        }
    });
    let options = RedisStreamOptions::default();
    // Both connections, after a pause that is at least half of the longest one, and the first few tries.
    let measured = Duration::from_secs(3);
    let rounds = measured.as_millis() / (options.max_backoff.as_millis() / 2);
    let most = 2 * (usize::try_from(rounds).unwrap() + 4);
    let stream = RedisStream::connect(&url, options).unwrap();
    let _callers = callers(&stream);
    sleep(measured).await;
    let tries = tries.load(Ordering::Relaxed);
    println!("{tries} tries in {measured:?} for {CALLERS} writers and {CALLERS} followers");
    assert!((4..=most).contains(&tries), "{tries}, at the most {most}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_go_on_over_the_same_two_connections_when_redis_is_back() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    let mut before = callers(&stream);
    while let Some(done) = before.join_next().await {
        done.unwrap();
    }
    server.kill().await;
    let mut callers = callers(&stream);
    // All have found out that it is away, and wait.
    sleep(Duration::from_secs(1)).await;
    server.start_again().await;
    let all = async {
        while let Some(done) = callers.join_next().await {
            done.unwrap();
        }
    };
    timeout(Duration::from_secs(20), all).await.unwrap();
    // The server counts from its start: beside these two there are the connections of the test itself.
    let connections = server.info("total_connections_received").await;
    assert!(connections < 10, "{connections} connections");
}
