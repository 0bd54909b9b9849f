//! Limits of connections, which hold before the gateway knows the caller.

use std::{num::NonZeroU32, time::Duration};

use ipnet::IpNet;

/// Limits of connections. The limits are here for invariant 10, nothing grows without a bound.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// The most connections of this gateway. When every connection slot is taken, the connection that has waited
    /// longest for a request gives way. Default 20 000: twice the streams, because readers must not lock out requests.
    pub most: usize,
    /// The most connections from one address. Default `None`, any number: behind a proxy, every connection has the
    /// proxy's address.
    pub most_of_address: Option<usize>,
    /// Bytes of a request's head, at least 8 KiB. Default 32 KiB: a token of 8 KB, and the cookies of a domain.
    pub max_header_bytes: usize,
    /// How long a connection may take to send the head of a request, and how long it may be idle. Default 75 s. Load
    /// balancers usually keep an idle connection for 60 s. The default is longer, because a client gets an error when
    /// the gateway closes a connection just before its next request.
    pub header_timeout: Duration,
    /// The base time for a body, in addition to its size divided by `body_bytes_per_second`. Default 30 s.
    pub body_timeout: Duration,
    /// The slowest accepted rate of a body in bytes per second, after `body_timeout`. Default 16 KiB.
    pub body_bytes_per_second: u32,
    /// Trusted proxies: the gateway believes their header `X-Forwarded-For`. Default none.
    pub trusted_proxies: Vec<IpNet>,
    /// Refused credentials per second, for one address. Default 10: a person's browser sends an ended session once, and
    /// a program with a wrong key needs no more. `None`: any number.
    pub refused_sign_ins_per_second: Option<NonZeroU32>,
    /// The burst of refused credentials before `refused_sign_ins_per_second` holds. Default 1000: the users behind one
    /// address, after the end of the users' sessions.
    pub refused_sign_in_burst: NonZeroU32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        const REFUSED_BURST: NonZeroU32 = NonZeroU32::new(1000).unwrap();
        Self {
            most: 20_000,
            most_of_address: None,
            max_header_bytes: 32 * 1024,
            header_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            body_bytes_per_second: 16 * 1024,
            trusted_proxies: Vec::new(),
            refused_sign_ins_per_second: NonZeroU32::new(10),
            refused_sign_in_burst: REFUSED_BURST,
        }
    }
}
