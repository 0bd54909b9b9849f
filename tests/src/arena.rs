//! One gateway, a worker, and a Redis between them, for tests and benchmarks of streams that have many readers.

use std::{net::SocketAddr, time::Duration};

use everturn_proto::{LogId, words::DEFAULT_TENANT};
use everturn_store::Access;
use everturn_stream::{Part, Piece, RedisStream, RedisStreamOptions, StreamWriter, TextKey};
use futures::{StreamExt, stream};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    backends::Backends,
    crowd::{Crowd, percentile, resident_bytes, stamp},
    model::Model,
    redis::Redis,
    stack::{Process, Stack},
    temporal::Temporal,
    wait,
};

/// Number of texts that are published at the same time.
const PUBLISHING: usize = 16;

/// The longest that a publication may take.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(30);

/// A text that a reader does not have by then is lost.
const LOST_AFTER: Duration = Duration::from_mins(1);

/// The processes that a measurement of streams runs on.
pub struct Arena {
    /// The stack with the worker, the database and the model.
    pub stack: Stack,
    /// The address that the gateway listens on.
    pub address: SocketAddr,
    /// The gateway's process.
    pub gateway: Process,
    stream: RedisStream,
    _worker: Process,
    _redis: Option<Redis>,
}

/// How long frames took from their publication until readers had them.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Half of the frames took less.
    pub median: Duration,
    /// 99 of 100 frames took less.
    pub p99: Duration,
    /// Number of frames that readers did not get.
    pub lost: usize,
}

/// The frames that are published for a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Speech {
    /// Number of frames.
    pub pieces: usize,
    /// The time between two frames.
    pub every: Duration,
    /// Approximate size of each frame, in bytes.
    pub bytes: usize,
}

impl Arena {
    /// Starts everything, with these keys in `[gateway]`.
    pub async fn start(model: Model, gateway_keys: &str) -> Self {
        let redis = Redis::start().await;
        let url = redis.url();
        let arena = Self::on(Stack::new(model).await, &url, gateway_keys).await;
        Self {
            _redis: Some(redis),
            ..arena
        }
    }

    /// Starts everything for a measurement, with one gateway, and servers that nobody else uses.
    pub async fn measured(model: Model, gateway_keys: &str) -> Self {
        let temporal = Temporal::measured().await.lasting();
        let backends = Backends::measured(false).await;
        let stack = Stack::of(temporal, backends, model, "").with_gateways(1);
        let url = stack.redis().url();
        Self::on(stack, &url, gateway_keys).await
    }

    /// Starts the processes. All streams belong to one tenant here, so the limits of tenants are off.
    async fn on(stack: Stack, redis_url: &str, gateway_keys: &str) -> Self {
        stack.configure_gateway(gateway_keys);
        stack.configure("[limits]\nopen_streams = 0\nrequests_per_second = 0\n");
        let environment = [("EVERTURN_REDIS", redis_url)];
        let gateway = stack.gateway_with(&environment).await;
        let worker = stack.worker_with(&environment);
        // A busy machine may be late, and a text that is published twice could not be told from one that is lost.
        let options = RedisStreamOptions {
            command_timeout: PUBLISHED_WITHIN,
            ..RedisStreamOptions::default()
        };
        let stream = RedisStream::connect(redis_url, options).unwrap();
        let address = stack.url().trim_start_matches("http://").parse().unwrap();
        Self {
            stack,
            address,
            stream,
            gateway,
            _worker: worker,
            _redis: None,
        }
    }

    /// Returns the memory that the gateway uses, in bytes.
    pub fn gateway_bytes(&self) -> usize {
        self.gateway.ids().into_iter().map(resident_bytes).sum()
    }

    /// Returns the path of a conversation's event stream.
    pub fn path(conversation_id: &str) -> String {
        format!("/api/v1/agent/conversations/{conversation_id}/events/stream")
    }

    async fn log_ids(&self, conversations: &[String]) -> Vec<LogId> {
        let store = self.stack.store().await;
        let tenant = Access::tenant(DEFAULT_TENANT);
        let mut log_ids = Vec::new();
        for id in conversations {
            let found = store.conversations.conversation(&tenant, id);
            log_ids.push(found.await.unwrap().unwrap().log_id);
        }
        log_ids
    }

    /// Publishes stamped texts to each of the conversations. `readers` is the number of their readers in the crowd.
    /// After each text it waits as long as they need. So a busy machine makes the measurement slower, and frames do not
    /// pile up.
    pub async fn speak(
        &self,
        conversations: &[String],
        crowd: &Crowd,
        readers: usize,
        speech: Speech,
    ) -> Latency {
        let log_ids = self.log_ids(conversations).await;
        let mut ticks = interval(speech.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        crowd.take_latencies();
        let (mut latencies, mut lost) = (Vec::new(), 0);
        for _ in 0..speech.pieces {
            ticks.tick().await;
            stream::iter(&log_ids)
                .map(|log_id| self.publish(log_id, speech.bytes))
                .buffer_unordered(PUBLISHING)
                .collect::<()>()
                .await;
            let arrived = wait::until("a text is with all readers", || async {
                (crowd.latencies() >= readers).then_some(())
            });
            // What comes later than this counts as lost.
            let _in_time = timeout(LOST_AFTER, arrived).await;
            let arrived = crowd.take_latencies();
            lost += readers.saturating_sub(arrived.len());
            latencies.extend(arrived);
        }
        latencies.sort_unstable();
        Latency {
            median: percentile(&latencies, 50),
            p99: percentile(&latencies, 99),
            lost,
        }
    }

    /// Publishes one stamped text.
    async fn publish(&self, log_id: &LogId, bytes: usize) {
        let key = TextKey {
            agent_execution_id: "run_arena".to_owned(),
            step: 0,
            part: Part::Text,
        };
        let piece = Piece {
            message_id: "msg_arena".to_owned(),
            key,
            generation: 1,
            offset: 0,
            text: stamp(bytes),
            is_end: false,
            continues: false,
        };
        self.stream.publish(log_id, piece).await.unwrap();
    }
}
