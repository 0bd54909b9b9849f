//! The limits of a tenant and of its owners, as configured.

use std::num::{NonZeroU32, NonZeroUsize};

/// The limits of each tenant. The memory limit holds per gateway; the remaining limits hold at all gateways together.
/// `None` is no limit.
#[derive(Debug, Clone)]
pub struct TenantLimits {
    /// Bytes per gateway in memory for the tenant. Default 256 MiB: half of the gateway's limit, because one tenant
    /// must not take the whole memory.
    pub memory_bytes: Option<NonZeroUsize>,
    /// Requests per second. Default 1000, in bursts of 2000: a gateway on two cores answers some thousand requests per
    /// second, and readers reconnect together after a gateway's restart.
    pub requests: RequestRate,
    /// Open streams. Default 5000: half of a gateway's streams, because one tenant must not take every stream.
    pub open_streams: Option<NonZeroU32>,
    /// Conversations with a running turn or a waiting message. Default 1000: the capacity of a worker's memory. A turn
    /// counts even while it waits for a person.
    pub concurrent_turns: Option<NonZeroU32>,
}

/// The limits of an owner within a tenant, at all gateways together. `None`, the default: only the tenant's limits
/// hold.
#[derive(Debug, Clone, Default)]
pub struct OwnerLimits {
    /// Requests per second.
    pub requests: RequestRate,
    /// Open streams.
    pub open_streams: Option<NonZeroU32>,
    /// The owner's conversations with a running turn or a waiting message.
    pub concurrent_turns: Option<NonZeroU32>,
}

/// The rate limit of requests.
#[derive(Debug, Clone, Copy)]
pub struct RequestRate {
    /// Requests per second; `None`: any number.
    pub per_second: Option<NonZeroU32>,
    /// The burst: requests that may come at once before `per_second` holds.
    pub burst: NonZeroU32,
}

const BURST: NonZeroU32 = NonZeroU32::new(2000).unwrap();

impl Default for RequestRate {
    fn default() -> Self {
        Self {
            per_second: None,
            burst: BURST,
        }
    }
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            memory_bytes: NonZeroUsize::new(256 * 1024 * 1024),
            requests: RequestRate {
                per_second: NonZeroU32::new(1000),
                burst: BURST,
            },
            open_streams: NonZeroU32::new(5000),
            concurrent_turns: NonZeroU32::new(1000),
        }
    }
}
