//! The gateway's limits and defaults.

mod audit;
mod auth;
mod codec;
mod connections;
mod origin;
mod reconciler;
mod scope;
mod temporal_ui;
mod tenant;

use std::{collections::BTreeMap, num::NonZeroUsize, ops::RangeInclusive, time::Duration};

use everturn_proto::{
    limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES},
    words::DEFAULT_AGENT,
};
use everturn_store::PageLimit;

pub(crate) use self::origin::host_of;
pub use self::{
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

/// The `poll_interval` of a gateway to which workers announce what they save, as over Redis. Only an event whose
/// announcement was lost has to wait for it.
pub const ANNOUNCED_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// What can be configured. Each limit is there for invariant 10, nothing grows without a bound.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Agents a conversation may be created with. Default: only `default`.
    pub agents: Vec<String>,
    /// The tenants of those agents that not all tenants may use, by the agents' names. Default: there are none.
    pub agent_tenants: BTreeMap<String, Vec<String>>,
    /// Agent of a conversation that names none. Default `default`.
    pub default_agent: String,
    /// Bytes of one message. Default, and the most there can be: `limits::MAX_MESSAGE_BYTES`.
    pub max_message_bytes: usize,
    /// Bytes of a request body. `None`, the default: as many as there can be, which is what a message of the largest
    /// size needs with every byte escaped, and the other fields.
    pub body_bytes: Option<NonZeroUsize>,
    /// Bytes that are held for tenants at once: frames, pages, bodies. Over it, each tenant may hold an equal part.
    /// Default 512 MiB: with 10 000 idle streams still less than the 1 GiB that the chart gives. `None`: any number.
    pub memory_bytes: Option<NonZeroUsize>,
    /// Limits of each tenant.
    pub tenant: TenantLimits,
    /// Limits of each owner.
    pub owner: OwnerLimits,
    /// Bytes of a title. Default 512.
    pub max_title_bytes: usize,
    /// Messages of one conversation that may wait. Default: what one continue-as-new can carry.
    pub max_queued_messages: u32,
    /// Events of a page when the request does not say. Default 1000, as many as a page may have.
    pub default_page: u32,
    /// Events of a page at the most. Default 1000: some hundred KB of ordinary events.
    pub max_page: u32,
    /// Bytes of a page's events at the most; a page has at least one event. Default
    /// [`PageLimit::DEFAULT_BYTES`].
    pub max_page_bytes: u32,
    /// Items of a page of a timeline at the most. Default 10 000.
    pub max_timeline_items: u32,
    /// Bytes of a page's items at the most; a page has at least one item. Default 8 MiB: 10 000 items of ordinary length.
    pub max_timeline_bytes: usize,
    /// Open SSE streams of this gateway. Default 10 000: each costs some 40 KB and a file descriptor.
    pub max_streams: usize,
    /// What connections may take before it is known who asks.
    pub connections: ConnectionLimits,
    /// Who may call, and how they prove it.
    pub auth: AuthConfig,
    /// What is written to the audit trail.
    pub audit: AuditConfig,
    /// Bytes of frames that one reader may lag behind; one that lags further is cut, and comes back with its cursor.
    /// Default 2 MiB: the largest event, twice; or the deltas of three minutes. A frame is kept once for all readers.
    pub reader_buffer: usize,
    /// How long a conversation's live tail outlives its last reader. Default 10 s: one that comes back after a cut, or
    /// from a look at another conversation, finds it running.
    pub linger: Duration,
    /// How often the gateway asks the store for new events without an announcement, with one query for all its
    /// streams. It is also how long the gateway waits before it follows a conversation again that could not be
    /// followed. An announcement makes it read at once, but one may be lost, and a worker in another process may have
    /// no way to announce. Default 1 s; where the stream announces across processes, [`ANNOUNCED_POLL_INTERVAL`] is
    /// enough.
    pub poll_interval: Duration,
    /// How the gateway looks for turns that have stalled.
    pub reconciler: ReconcilerConfig,
    /// Where people see a workflow in the Temporal UI. Default `None`: no caller is told of it.
    pub temporal_ui: Option<TemporalUi>,
    /// The codec server for the Temporal UI and CLI. Default `None`: nothing is encrypted.
    pub codec: Option<CodecServer>,
    /// How often an idle stream sends a comment. Default 15 s: proxies cut silent streams after 30 s or more.
    pub heartbeat: Duration,
    /// How long readers are told to wait before they come back. Each is told another time of this range, so that the
    /// readers of a gateway that stops do not all come to the next one at once. Default 1 s to 3 s.
    pub retry: RangeInclusive<Duration>,
    /// A connection that takes no byte for this long is cut; its reader comes back with its cursor. Default 30 s.
    pub stall_timeout: Duration,
    /// How long `serve` goes on after it was told to stop, while it says that it is not ready. Load balancers must
    /// learn of this before connections are refused. Default 5 s.
    pub drain: Duration,
    /// How long `serve` then waits for streams and requests in flight. Default 10 s: with `drain` and what else a
    /// process has to do, less than the 30 s that Kubernetes gives.
    pub shutdown_grace: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            agents: vec![DEFAULT_AGENT.to_owned()],
            agent_tenants: BTreeMap::new(),
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
            drain: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

impl GatewayConfig {
    /// The agents that a conversation of this tenant may be created with.
    pub(crate) fn agents_of(&self, tenant_id: &str) -> Vec<&str> {
        let may_use = |agent: &&String| {
            let tenants = self.agent_tenants.get(*agent);
            tenants.is_none_or(|tenants| tenants.iter().any(|tenant| tenant == tenant_id))
        };
        self.agents
            .iter()
            .filter(may_use)
            .map(String::as_str)
            .collect()
    }

    /// Bytes of a request body.
    pub fn max_body_bytes(&self) -> usize {
        let needed = self
            .message_limit()
            .saturating_mul(6)
            .saturating_add(16 * 1024);
        self.body_bytes
            .map_or(needed, |limit| limit.get().min(needed))
    }

    /// Chooses how long one reader is told to wait.
    pub(crate) fn retry_delay(&self) -> Duration {
        let (from, to) = (*self.retry.start(), *self.retry.end());
        // Where the system has no random number, all readers are told the shortest time.
        let random = getrandom::u32().unwrap_or(0);
        from + to
            .saturating_sub(from)
            .mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// The most bytes of one message. A setting larger than the protocol's limit has no effect.
    pub fn message_limit(&self) -> usize {
        self.max_message_bytes.min(MAX_MESSAGE_BYTES)
    }
}
