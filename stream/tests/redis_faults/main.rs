//! The Redis stream when Redis is killed, flushed, paused, or cuts connections; and what it leaves behind.

#![allow(clippy::unwrap_used)]

mod away;
mod cancels;
mod comes_back;
mod fence;
mod followers;
mod leftovers;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use everturn_stream::{Following, RedisStream, RedisStreamOptions, StreamReader};
use everturn_test_servers::redis::Redis;
use tokio::time::sleep;

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

/// Follows as soon as that is possible.
async fn follow(stream: &RedisStream) -> Following {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match stream.follow(&"c".into()).await {
            Ok(following) => return following,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
