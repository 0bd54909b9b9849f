//! What one tenant may use, as configured.

/// Limits of each tenant. 0 takes a limit away.
#[derive(Debug, Clone)]
pub struct TenantLimits {
    /// Requests a second to one gateway. Default 1000: some thousand are what a gateway on two cores can answer.
    pub requests_per_second: u32,
    /// Requests that may come at once before `requests_per_second` holds. Default 2000: the readers that come back
    /// together after a gateway was restarted.
    pub request_burst: u32,
    /// Open streams at one gateway. Default 5000: half of what the gateway serves, so that no tenant takes it all.
    pub open_streams: u32,
    /// Conversations in which a turn runs or a message waits, on all gateways together. Default 1000: what one worker
    /// keeps in memory. A turn that waits for a person counts.
    pub concurrent_turns: u32,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            requests_per_second: 1000,
            request_burst: 2000,
            open_streams: 5000,
            concurrent_turns: 1000,
        }
    }
}
