//! What one tenant may use, as configured.

use std::num::NonZeroU32;

/// Limits of each tenant; `None`: no such limit.
#[derive(Debug, Clone)]
pub struct TenantLimits {
    /// Requests a second to one gateway. Default 1000: some thousand are what a gateway on two cores can answer.
    pub requests_per_second: Option<NonZeroU32>,
    /// Requests that may come at once before `requests_per_second` holds. Default 2000: the readers that come back
    /// together after a gateway was restarted.
    pub request_burst: NonZeroU32,
    /// Open streams at one gateway. Default 5000: half of what the gateway serves, so that no tenant takes it all.
    pub open_streams: Option<NonZeroU32>,
    /// Conversations in which a turn runs or a message waits, on all gateways together. Default 1000: what one worker
    /// keeps in memory. A turn that waits for a person counts.
    pub concurrent_turns: Option<NonZeroU32>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        const REQUEST_BURST: NonZeroU32 = NonZeroU32::new(2000).unwrap();
        Self {
            requests_per_second: NonZeroU32::new(1000),
            request_burst: REQUEST_BURST,
            open_streams: NonZeroU32::new(5000),
            concurrent_turns: NonZeroU32::new(1000),
        }
    }
}
