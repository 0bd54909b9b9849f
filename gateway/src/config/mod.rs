//! The gateway's limits and defaults.

mod agents;
mod audit;
mod auth;
mod codec;
mod connections;
mod origin;
mod reconciler;
mod scope;
mod temporal_ui;
mod tenant;

use std::{num::NonZeroUsize, ops::RangeInclusive, time::Duration};

use everturn_proto::{
    limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES},
    words::DEFAULT_AGENT,
};
use everturn_store::PageLimit;

pub(crate) use self::origin::host_of;
pub use self::{
    agents::{OfferedAgent, OfferedAgents},
    audit::AuditConfig,
    auth::{ALGORITHMS, Algorithm, AuthConfig, OidcConfig, is_safe_to_fetch},
    codec::CodecServer,
    connections::ConnectionLimits,
    origin::{NotAnOrigin, Origin},
    reconciler::{LostTurns, ReconcilerConfig},
    scope::{Scope, Scopes},
    temporal_ui::{NoTemporalUi, TemporalUi},
    tenant::{OwnerLimits, RequestRate, TenantLimits},
};

/// The `poll_interval` of a gateway to which workers announce saved events, as over Redis. Only an event with a lost
/// announcement waits for the poll.
pub const ANNOUNCED_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The settings of a gateway. The limits are here for invariant 10, nothing grows without a bound.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Agents a conversation may be created with, until other agents replace them ([`OfferedAgents`]). Default: only
    /// `default`.
    pub agents: Vec<OfferedAgent>,
    /// The agent of a conversation created without an agent's name. Default `default`.
    pub default_agent: String,
    /// Bytes of one message. The default is also the maximum: `limits::MAX_MESSAGE_BYTES`.
    pub max_message_bytes: usize,
    /// Bytes of a request body. `None`, the default, is also the maximum: the size of the largest message with every
    /// byte escaped, plus the remaining fields.
    pub body_bytes: Option<NonZeroUsize>,
    /// Bytes of frames, pages and bodies that the gateway holds for tenants at once. Above the limit, every tenant may
    /// hold an equal part. Default 512 MiB: with 10 000 idle streams still less than the chart's 1 GiB. `None`: any
    /// number.
    pub memory_bytes: Option<NonZeroUsize>,
    /// Limits of each tenant.
    pub tenant: TenantLimits,
    /// Limits of each owner.
    pub owner: OwnerLimits,
    /// Bytes of a title. Default 512.
    pub max_title_bytes: usize,
    /// The most waiting messages of one conversation. Default: the capacity of one continue-as-new.
    pub max_queued_messages: u32,
    /// Events of a page when the request gives no number. Default 1000, the maximum of a page.
    pub default_page: u32,
    /// The most events of a page. Default 1000: some hundred KB of ordinary events.
    pub max_page: u32,
    /// The most bytes of a page's events. A page has at least one event, even an event above the limit. Default
    /// [`PageLimit::DEFAULT_BYTES`].
    pub max_page_bytes: u32,
    /// The most items of a timeline's page. Default 10 000.
    pub max_timeline_items: u32,
    /// The most bytes of a page's items. A page has at least one item, even an item above the limit. Default 8 MiB, the
    /// size of 10 000 ordinary items.
    pub max_timeline_bytes: usize,
    /// The most bytes of an LLM call's messages in one answer; older messages of the call are left out. Default 1 MiB:
    /// some 250,000 tokens, and still a text that a browser shows.
    pub max_call_bytes: usize,
    /// Open SSE streams of this gateway. Default 10 000: each costs some 40 KB and a file descriptor.
    pub max_streams: usize,
    /// Limits of connections, which hold before the gateway knows the caller.
    pub connections: ConnectionLimits,
    /// Authentication of callers.
    pub auth: AuthConfig,
    /// The audit trail.
    pub audit: AuditConfig,
    /// The largest lag of one reader, in bytes of frames. The gateway cuts a reader with a larger lag, and the reader
    /// reconnects with its cursor. Default 2 MiB: twice the largest event, or the deltas of three minutes. Readers
    /// share the memory of a frame.
    pub reader_buffer: usize,
    /// How long a conversation's live tail outlives its last reader. Default 10 s: a reader who reconnects after a cut,
    /// or returns from another conversation, finds the tail running.
    pub linger: Duration,
    /// How often the gateway asks the store for new events without an announcement, with one query for every open
    /// stream. After a failure to follow a conversation, the gateway also waits for this time before the next try. An
    /// announcement makes the gateway read at once. The poll is needed because an announcement may be lost, and because
    /// a worker in another process may have no way to announce. Default 1 s; where the stream announces across
    /// processes, [`ANNOUNCED_POLL_INTERVAL`] is enough.
    pub poll_interval: Duration,
    /// How the gateway looks for stalled turns.
    pub reconciler: ReconcilerConfig,
    /// The address of a workflow's page in the Temporal UI. Default `None`: answers have no link to the Temporal UI.
    pub temporal_ui: Option<TemporalUi>,
    /// The codec server for the Temporal UI and CLI. Default `None`: nothing is encrypted.
    pub codec: Option<CodecServer>,
    /// How often an idle stream sends a comment. Default 15 s: proxies cut silent streams after 30 s or more.
    pub heartbeat: Duration,
    /// How long readers must wait before they reconnect. The gateway picks a random time of the range per reader,
    /// because the readers of a stopping gateway must not all connect to the next gateway at once. Default 1 s to 3 s.
    pub retry: RangeInclusive<Duration>,
    /// How long a connection may accept no byte before the gateway cuts the connection. The reader then reconnects
    /// with a cursor. Default 30 s.
    pub stall_timeout: Duration,
    /// How long a call over MCP waits for the end of its turn. The turn goes on after the wait, and the client may call
    /// again. Default 1 h: longer than most turns, and an end for calls that their clients have forgotten.
    pub mcp_wait: Duration,
    /// How long `serve` goes on after `shutdown` and reports that the gateway is not ready. Load balancers must see the
    /// report before the gateway refuses connections. Default 5 s.
    pub drain: Duration,
    /// How long `serve` then waits for streams and requests in flight. Default 10 s: with `drain` and the rest of a
    /// process's shutdown, less than the 30 s that Kubernetes gives.
    pub shutdown_grace: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            agents: vec![OfferedAgent::named(DEFAULT_AGENT)],
            default_agent: DEFAULT_AGENT.to_owned(),
            max_message_bytes: MAX_MESSAGE_BYTES,
            body_bytes: None,
            memory_bytes: NonZeroUsize::new(512 * 1024 * 1024),
            tenant: TenantLimits::default(),
            owner: OwnerLimits::default(),
            max_title_bytes: 512,
            max_queued_messages: u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX),
            default_page: 1000,
            max_page: 1000,
            max_page_bytes: PageLimit::DEFAULT_BYTES,
            max_timeline_items: 10_000,
            max_timeline_bytes: 8 * 1024 * 1024,
            max_call_bytes: 1024 * 1024,
            max_streams: 10_000,
            connections: ConnectionLimits::default(),
            auth: AuthConfig::default(),
            audit: AuditConfig::default(),
            reader_buffer: 2 * 1024 * 1024,
            linger: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            reconciler: ReconcilerConfig::default(),
            temporal_ui: None,
            codec: None,
            heartbeat: Duration::from_secs(15),
            retry: Duration::from_secs(1)..=Duration::from_secs(3),
            stall_timeout: Duration::from_secs(30),
            mcp_wait: Duration::from_hours(1),
            drain: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

impl GatewayConfig {
    /// Returns the most bytes of a request body.
    pub fn max_body_bytes(&self) -> usize {
        let needed = self
            .message_limit()
            .saturating_mul(6)
            .saturating_add(16 * 1024);
        self.body_bytes
            .map_or(needed, |limit| limit.get().min(needed))
    }

    /// Chooses how long one reader must wait before reconnecting.
    pub(crate) fn retry_delay(&self) -> Duration {
        let (from, to) = (*self.retry.start(), *self.retry.end());
        // Without a random number from the system, every reader gets the shortest time.
        let random = getrandom::u32().unwrap_or(0);
        from + to
            .saturating_sub(from)
            .mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Returns the most bytes of one message. A setting larger than the protocol's limit has no effect.
    pub fn message_limit(&self) -> usize {
        self.max_message_bytes.min(MAX_MESSAGE_BYTES)
    }
}
