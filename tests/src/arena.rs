//! One gateway with a crowd of readers, a worker, and a Redis between them. For tests and benchmarks of streams.

use std::{net::SocketAddr, time::Duration};

use everturn_stream::{Part, Piece, RedisStream, RedisStreamOptions, StreamWriter, TextKey};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    crowd::{Crowd, percentile, resident_bytes, stamp},
    model::Model,
    redis::Redis,
    stack::{Process, Stack},
    wait,
};

/// The processes and their surroundings.
pub struct Arena {
    /// Worker, gateway, database and model.
    pub stack: Stack,
    /// Where the gateway listens.
    pub address: SocketAddr,
    /// The gateway's process.
    pub gateway: Process,
    stream: RedisStream,
    _worker: Process,
    _redis: Redis,
}

/// How long frames took from their publication to their readers.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Half of them took less.
    pub median: Duration,
    /// 99 of 100 took less.
    pub p99: Duration,
}

/// What is published for a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Speech {
    /// Frames.
    pub pieces: usize,
    /// The time between two frames.
    pub every: Duration,
    /// Bytes of each frame, roughly.
    pub bytes: usize,
}

impl Arena {
    /// Starts everything, with these keys in `[gateway]`. One tenant has all streams here, so it has no limits.
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

    /// Memory that the gateway has in use, in bytes.
    pub fn gateway_bytes(&self) -> usize {
        self.gateway.ids().into_iter().map(resident_bytes).sum()
    }

    /// Path of a conversation's stream.
    pub fn path(conversation_id: &str) -> String {
        format!("/api/v1/agent/conversations/{conversation_id}/events/stream")
    }

    /// Publishes stamped texts to a conversation, and waits until every reader of the crowd has got all of them.
    /// Between two of them the crowd has all the time it needs, so that a busy machine makes them slow and not more.
    pub async fn speak(
        &self,
        conversation_id: &str,
        crowd: &Crowd,
        readers: usize,
        speech: Speech,
    ) -> Latency {
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
            self.stream
                .publish(conversation_id, piece_of)
                .await
                .unwrap();
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
