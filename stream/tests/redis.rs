//! The Redis stream: what every back end must do.

#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

mod conformance;
mod redis_server;

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use everturn_stream::{RedisStream, RedisStreamOptions, StreamOptions};

use self::redis_server::RedisServer;

/// One server for all tests of this file, which do it no harm. Ends with the process, its leash.
static SERVER: LazyLock<RedisServer> = LazyLock::new(RedisServer::start);
static PREFIX: AtomicU32 = AtomicU32::new(0);

struct Redis;

impl conformance::Backend for Redis {
    type Stream = RedisStream;
    const CASES: u32 = 40;

    async fn fresh(&self, options: StreamOptions) -> Arc<RedisStream> {
        let options = RedisStreamOptions {
            prefix: format!("test{}", PREFIX.fetch_add(1, Ordering::Relaxed)),
            max_open_texts: options.max_open_texts,
            follower_buffer: options.follower_buffer,
            max_followers: options.max_followers,
            text_ttl: options.ttl,
            // Tests share 2 cores with compilers.
            command_timeout: Duration::from_secs(10),
            follow_timeout: Duration::from_secs(10),
            ..RedisStreamOptions::default()
        };
        Arc::new(RedisStream::connect(&SERVER.url(), options).unwrap())
    }
}

conformance_suite!(Redis);
