//! The gateway's limits and defaults.

use std::time::Duration;

use everturn_proto::{
    limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES},
    words::DEFAULT_AGENT,
};

use crate::{auth::AuthConfig, limits::TenantLimits};

/// `poll_interval` where workers announce what they save, as over Redis: only what was lost has to wait for it.
pub const ANNOUNCED_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// What can be configured. Every limit answers invariant 10.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Agents a conversation may be created with. Default: only `default`.
    pub agents: Vec<String>,
    /// Agent of a conversation that names none. Default `default`.
    pub default_agent: String,
    /// Bytes of one message. Default, and the most there can be: `limits::MAX_MESSAGE_BYTES`.
    pub max_message_bytes: usize,
    /// Bytes of a request body. Default, and the most there can be: what a message of the largest size needs with every
    /// byte escaped, and the other fields. 0: the default.
    pub body_bytes: usize,
    /// Limits of each tenant.
    pub tenant: TenantLimits,
    /// Bytes of a title. Default 512.
    pub max_title_bytes: usize,
    /// Messages of one conversation that may wait. Default: what one continue-as-new can carry.
    pub max_queued_messages: u32,
    /// Events of a page when the request does not say. Default 100.
    pub default_page: u32,
    /// Events of a page at the most. Default 1000: some hundred KB of ordinary events.
    pub max_page: u32,
    /// Items of a timeline at the most, the newest. Default 10 000.
    pub max_timeline_items: usize,
    /// Open SSE streams of this gateway. Default 10 000: each holds a socket and a follower's buffer.
    pub max_streams: usize,
    /// Who may call, and how they prove it.
    pub auth: AuthConfig,
    /// How often the gateway looks into the store unasked, with one query for all its streams; also how long a
    /// stream waits before it follows again what could not be followed. An announcement makes it look at once, but
    /// one may be lost, and a worker in another process may have no way to announce. Default 1 s; with a stream
    /// that announces across processes [`ANNOUNCED_POLL_INTERVAL`] does.
    pub poll_interval: Duration,
    /// How often an idle stream sends a comment. Default 15 s: proxies cut silent streams after 30 s or more.
    pub heartbeat: Duration,
    /// How long a reader is told to wait before it comes back. Default 1 s.
    pub retry_hint: Duration,
    /// A connection that takes no byte for this long is cut; its reader comes back with its cursor. Default 30 s.
    pub stall_timeout: Duration,
    /// How long `serve` waits for requests in flight once it is told to stop. Default 10 s.
    pub shutdown_grace: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            agents: vec![DEFAULT_AGENT.to_owned()],
            default_agent: DEFAULT_AGENT.to_owned(),
            max_message_bytes: MAX_MESSAGE_BYTES,
            body_bytes: 0,
            tenant: TenantLimits::default(),
            max_title_bytes: 512,
            max_queued_messages: u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX),
            default_page: 100,
            max_page: 1000,
            max_timeline_items: 10_000,
            max_streams: 10_000,
            auth: AuthConfig::default(),
            poll_interval: Duration::from_secs(1),
            heartbeat: Duration::from_secs(15),
            retry_hint: Duration::from_secs(1),
            stall_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

impl GatewayConfig {
    /// Bytes of a request body.
    pub fn max_body_bytes(&self) -> usize {
        let needed = self.message_limit().saturating_mul(6).saturating_add(16 * 1024);
        if self.body_bytes == 0 { needed } else { self.body_bytes.min(needed) }
    }

    /// Bytes of one message: a larger setting than the protocol's limit has no effect.
    pub fn message_limit(&self) -> usize {
        self.max_message_bytes.min(MAX_MESSAGE_BYTES)
    }
}
