//! What connections may take before it is known who asks.

use std::{num::NonZeroU32, time::Duration};

use ipnet::IpNet;

/// Limits of connections. Each is there for invariant 10, nothing grows without a bound.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Connections of this gateway. When all are taken, the one that has waited longest for a request gives way. Default
    /// 20 000: twice the streams, so that readers do not lock out requests.
    pub most: usize,
    /// Connections from one address. Default `None`, any number: behind a proxy, all come from one address.
    pub most_of_address: Option<usize>,
    /// Bytes of a request's head, at least 8 KiB. Default 32 KiB: a token of 8 KB, and all the cookies of a domain.
    pub max_header_bytes: usize,
    /// How long a connection may take to send the head of a request, and how long it may be idle. Default 75 s: longer
    /// than the 60 s for which load balancers usually keep an idle connection, because one that is closed while it is
    /// about to be used is an error for a client.
    pub header_timeout: Duration,
    /// How long a body may take, beside the time that `body_bytes_per_second` gives it. Default 30 s.
    pub body_timeout: Duration,
    /// How fast a body must come at least, after `body_timeout`. Default 16 KiB.
    pub body_bytes_per_second: u32,
    /// Proxies whose header `X-Forwarded-For` is believed. Default none.
    pub trusted_proxies: Vec<IpNet>,
    /// Look-ups of unknown keys and sessions in a second, for one address. Default 100. `None`: any number.
    pub unknown_keys_per_second: Option<NonZeroU32>,
    /// Such look-ups that may come at once before `unknown_keys_per_second` holds. Default 1000: all users behind one
    /// proxy whose sessions have ended.
    pub unknown_key_burst: NonZeroU32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        const UNKNOWN_KEY_BURST: NonZeroU32 = NonZeroU32::new(1000).unwrap();
        Self {
            most: 20_000,
            most_of_address: None,
            max_header_bytes: 32 * 1024,
            header_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            body_bytes_per_second: 16 * 1024,
            trusted_proxies: Vec::new(),
            unknown_keys_per_second: NonZeroU32::new(100),
            unknown_key_burst: UNKNOWN_KEY_BURST,
        }
    }
}
