//! What a tenant, and each of its owners, may use, as configured.

use std::num::{NonZeroU32, NonZeroUsize};

/// Limits of each tenant, at all gateways together but for the memory; `None`: no such limit.
#[derive(Debug, Clone)]
pub struct TenantLimits {
    /// Bytes that are held for it at each gateway. Default 256 MiB: half of what all may hold, so that no tenant takes it
    /// all.
    pub memory_bytes: Option<NonZeroUsize>,
    /// Requests a second. Default 1000, in bursts of 2000: some thousand are what a gateway on two cores can answer, and
    /// readers come back together after a gateway was restarted.
    pub requests: RequestRate,
    /// Open streams. Default 5000: half of what a gateway serves, so that no tenant takes it all.
    pub open_streams: Option<NonZeroU32>,
    /// Conversations in which a turn runs or a message waits. Default 1000: what one worker keeps in memory. A turn that
    /// waits for a person counts.
    pub concurrent_turns: Option<NonZeroU32>,
}

/// Limits of each owner of a tenant, at all gateways together; `None`, which is the default: only those of the tenant.
#[derive(Debug, Clone, Default)]
pub struct OwnerLimits {
    /// Requests a second.
    pub requests: RequestRate,
    /// Open streams.
    pub open_streams: Option<NonZeroU32>,
    /// The owner's conversations in which a turn runs or a message waits.
    pub concurrent_turns: Option<NonZeroU32>,
}

/// How fast requests may come.
#[derive(Debug, Clone, Copy)]
pub struct RequestRate {
    /// Requests a second; `None`: any number.
    pub per_second: Option<NonZeroU32>,
    /// Requests that may come at once before `per_second` holds.
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
