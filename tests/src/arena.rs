//! One gateway, a worker, and a Redis between them, for tests and benchmarks of streams that have many readers.

use std::{net::SocketAddr, time::Duration};

use everturn_proto::{LogId, words::DEFAULT_TENANT};
use everturn_store::Access;
use everturn_stream::{Part, Piece, RedisStream, RedisStreamOptions, StreamWriter, TextKey};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    crowd::{Crowd, percentile, resident_bytes, stamp},
    model::Model,
    redis::Redis,
    stack::{Process, Stack},
    wait,
};

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
    _redis: Redis,
}

/// How long frames took from their publication until readers had them.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Half of the frames took less.
    pub median: Duration,
    /// 99 of 100 frames took less.
    pub p99: Duration,
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
    /// Starts everything, with these keys in `[gateway]`. All streams belong to one tenant here, so the limits of
    /// tenants are off.
    pub async fn start(model: Model, gateway_keys: &str) -> Self {
        let stack = Stack::new(model).await;
        stack.configure_gateway(gateway_keys);
        stack.configure("[limits]\nopen_streams = 0\nrequests_per_second = 0\n");
        let redis = Redis::start().await;
        let url = redis.url();
        let environment = [("EVERTURN_REDIS", url.as_str())];
        let gateway = stack.gateway_with(&environment).await;
        let worker = stack.worker_with(&environment);
        let stream = RedisStream::connect(&url, RedisStreamOptions::default()).unwrap();
        let address = stack.url().trim_start_matches("http://").parse().unwrap();
        Self {
            stack,
            address,
            stream,
            gateway,
            _worker: worker,
            _redis: redis,
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

    async fn log_id(&self, conversation_id: &str) -> LogId {
        let store = self.stack.store().await;
        let tenant = Access::tenant(DEFAULT_TENANT);
        let found = store.conversations.conversation(&tenant, conversation_id);
        found.await.unwrap().unwrap().log_id
    }

    /// Publishes stamped texts to a conversation, and waits until every reader of the crowd has got all of them.
    /// After each text it waits as long as the crowd needs. So a busy machine makes the measurement slower, and frames
    /// do not pile up.
    pub async fn speak(
        &self,
        conversation_id: &str,
        crowd: &Crowd,
        readers: usize,
        speech: Speech,
    ) -> Latency {
        let log_id = self.log_id(conversation_id).await;
        let mut ticks = interval(speech.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        crowd.take_latencies();
        for piece in 1..=speech.pieces {
            ticks.tick().await;
            let key = TextKey {
                agent_execution_id: "run_arena".to_owned(),
                step: 0,
                part: Part::Text,
            };
            let text = stamp(speech.bytes);
            let piece_of = Piece {
                message_id: "msg_arena".to_owned(),
                key,
                generation: 1,
                offset: 0,
                text,
                is_end: false,
            };
            self.stream.publish(&log_id, piece_of).await.unwrap();
            wait::until("a text is with all readers", || async {
                (crowd.latencies() >= piece * readers).then_some(())
            })
            .await;
        }
        let latencies = crowd.take_latencies();
        Latency {
            median: percentile(&latencies, 50),
            p99: percentile(&latencies, 99),
        }
    }
}
