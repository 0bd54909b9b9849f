//! The Redis stream: what every back end must do.

#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

mod conformance;
mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use everturn_stream::{RedisStream, RedisStreamOptions, StreamOptions};
use everturn_test_servers::redis::Redis;
use tokio::sync::OnceCell;

/// One server for all tests of this file, which do it no harm. It ends with the process.
static SERVER: OnceCell<Redis> = OnceCell::const_new();
static PREFIX: AtomicU32 = AtomicU32::new(0);

struct RedisBackend;

impl conformance::Backend for RedisBackend {
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
        let server = SERVER.get_or_init(Redis::start).await;
        Arc::new(RedisStream::connect(&server.url(), options).unwrap())
    }
}

conformance_suite!(RedisBackend);
