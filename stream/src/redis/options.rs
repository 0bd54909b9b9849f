//! Limits and times of the Redis stream (invariant 10, nothing grows without a bound).

use std::time::Duration;

/// The settings of the Redis stream. `limits::MAX_TEXT_BYTES` limits the bytes of one text, because the writer and
/// the stream must agree on that limit.
#[derive(Debug, Clone)]
pub struct RedisStreamOptions {
    /// The prefix of every key and channel. Installations with different prefixes can share a Redis. Default
    /// `everturn`.
    pub prefix: String,
    /// The name of the installation. Gateways with an identical name add up their counts
    /// ([`SharedCounts`](crate::SharedCounts)). Texts and announcements need no installation, because log ids are
    /// unique. Default empty.
    pub installation: String,
    /// The most open texts of one conversation. Beyond the limit the text with the oldest change is forgotten, and
    /// its writer publishes it again. Default 64: more sub-agents than a person can watch.
    pub max_open_texts: usize,
    /// The most items by which a follower may lag before it is cut. Default 1024: 20 s of one text at a piece every
    /// 20 ms.
    pub follower_buffer: usize,
    /// The most followers of one conversation in a process. Default 1024: a guard against a client that opens
    /// streams in a loop.
    pub max_followers: usize,
    /// The most conversations followed by this process. Default 10 000: as many as a gateway has streams.
    pub max_conversations: usize,
    /// The most agent executions whose newest generation the process remembers. Default 10 000, some 2 MB.
    pub max_known_agent_executions: usize,
    /// The lifetime of a text that does not grow. Default 10 min: more than the time limit of one LLM call and its
    /// save.
    pub text_ttl: Duration,
    /// The lifetime of the rest of a step or conversation after the seal: the mark, which refuses late pieces, and
    /// the position. Default 2 min: a piece is late by a worker's heartbeat time-out of some seconds.
    pub sealed_ttl: Duration,
    /// The lifetime of the fence of an agent execution with an open text; never less than `text_ttl`. Default 1 h: a
    /// step may wait 10 min for its provider's Retry-After, and its first try may still be alive somewhere.
    pub fence_ttl: Duration,
    /// The time limit of a publication or announcement, connecting included. Default 500 ms, because a save waits for
    /// its announcement.
    pub command_timeout: Duration,
    /// The time limit of `follow`. Default 1 s: many readers come back at once after an outage of Redis, but a reader
    /// waits for its first event meanwhile.
    pub follow_timeout: Duration,
    /// The longest pause between two tries to reach a Redis that is away; calls in the pause fail at once. Default
    /// 250 ms: live texts return within a second, even if Redis comes back during a try that waits for its time-out.
    /// Every connection of a process is tried some five times a second, however many texts the process writes and
    /// reads.
    pub max_backoff: Duration,
    /// The interval for unsubscribing from conversations without followers, and for checking the subscriber's
    /// connection. Default 5 s.
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

/// Returns the pause after `failures` failed tries in a row: 50 ms, doubled each time, up to `longest`. A random
/// share of at most half is taken off, so that the processes of a lost Redis return at different times.
pub(super) fn backoff(failures: u32, longest: Duration) -> Duration {
    let pause = Duration::from_millis(50)
        .saturating_mul(1 << failures.clamp(1, 10).saturating_sub(1))
        .min(longest);
    // If the system has no random number, the pause is the shortest possible.
    let random = getrandom::u32().unwrap_or(0);
    pause.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}
