//! Limits and times of the Redis stream (invariant 10, nothing grows without a bound).

use std::time::Duration;

/// What can be set. Bytes of one text are limited by `limits::MAX_TEXT_BYTES`, on which the writer and the stream
/// must agree.
#[derive(Debug, Clone)]
pub struct RedisStreamOptions {
    /// What every key and channel begins with, so that installations can share a Redis. Default `everturn`.
    pub prefix: String,
    /// Whose counts are added up ([`SharedCounts`](crate::SharedCounts)): those of the gateways of one installation, which
    /// have the same text here. Texts and announcements need none, because no two logs have the same id. Default empty.
    pub installation: String,
    /// Open texts of one conversation; past it the one untouched longest is forgotten, and its writer publishes
    /// it again. Default 64: more sub-agents than a person can watch.
    pub max_open_texts: usize,
    /// Items a follower may lag behind before it is cut. Default 1024: 20 s of one text at a piece every 20 ms.
    pub follower_buffer: usize,
    /// Followers of one conversation in this process. Default 1024: a guard against a client that opens streams
    /// in a loop.
    pub max_followers: usize,
    /// Conversations followed by this process. Default 10 000: as many as a gateway has streams.
    pub max_conversations: usize,
    /// Agent executions whose newest generation this process remembers. Default 10 000, some 2 MB.
    pub max_known_agent_executions: usize,
    /// A text is forgotten when it has not grown for this long. Default 10 min: more than a model is given for
    /// one call and its save.
    pub text_ttl: Duration,
    /// What is left of a step or a conversation once its text is sealed: the mark that refuses late pieces, and
    /// the place. Default 2 min: a piece is late by a worker's heartbeat time-out of some seconds.
    pub sealed_ttl: Duration,
    /// The fence of an agent execution with an open text; never less than `text_ttl`. Default 1 h: a step may
    /// wait 10 min for its provider's Retry-After, and its first try may still be alive somewhere.
    pub fence_ttl: Duration,
    /// How long a publication or an announcement may take, connecting included. Default 500 ms: a save waits for
    /// its announcement.
    pub command_timeout: Duration,
    /// How long `follow` may take. Default 1 s: many readers come back at once after Redis was away; but a reader
    /// waits for its first event meanwhile.
    pub follow_timeout: Duration,
    /// Longest pause between two tries to reach a Redis that is away; until then calls fail at once. Default 250 ms:
    /// live texts are back within a second, also when a try still waits for its time-out as Redis comes back. Each of
    /// a process's connections is tried some five times a second, however many texts are written and read there.
    pub max_backoff: Duration,
    /// How often conversations nobody follows any more are unsubscribed, and the subscriber's connection is
    /// checked. Default 5 s.
    pub sweep_interval: Duration,
}

impl Default for RedisStreamOptions {
    fn default() -> Self {
        Self {
            prefix: "everturn".to_owned(),
            installation: String::new(),
            max_open_texts: 64,
            follower_buffer: 1024,
            max_followers: 1024,
            max_conversations: 10_000,
            max_known_agent_executions: 10_000,
            text_ttl: Duration::from_mins(10),
            sealed_ttl: Duration::from_mins(2),
            fence_ttl: Duration::from_hours(1),
            command_timeout: Duration::from_millis(500),
            follow_timeout: Duration::from_secs(1),
            max_backoff: Duration::from_millis(250),
            sweep_interval: Duration::from_secs(5),
        }
    }
}

/// Pause after `failures` tries in a row: 50 ms, doubled each time, up to `longest`; of that at least a half, so that
/// the processes which have lost the same Redis do not come back all at once.
pub(super) fn backoff(failures: u32, longest: Duration) -> Duration {
    let pause = Duration::from_millis(50)
        .saturating_mul(1 << failures.clamp(1, 10).saturating_sub(1))
        .min(longest);
    // Where the system has no random number, the pause is the shortest.
    let random = getrandom::u32().unwrap_or(0);
    pause.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}
