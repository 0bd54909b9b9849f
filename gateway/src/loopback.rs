//! Hosts that are this machine.

use std::net::IpAddr;

/// True for a host's name or address, as in a URL, that is this machine's own.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
