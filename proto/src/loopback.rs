//! Detects the hosts of the local machine: traffic to such a host needs no encryption, and no other machine can call
//! from there.

use std::net::IpAddr;

/// True for `localhost` and for a loopback address, as in a URL or without the brackets of IPv6. The function resolves
/// no other name, because the address behind a name may change.
pub fn is_loopback(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// True when nobody on the network can read or change traffic to the host of a URL: https, or http on the local
/// machine.
pub fn is_private(scheme: &str, host: Option<&str>) -> bool {
    scheme == "https" || (scheme == "http" && host.is_some_and(is_loopback))
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_this_machine_is_loopback() {
        for own in [
            "localhost",
            "LocalHost",
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "[::1]",
        ] {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "",
            "[localhost]",
            "[::1",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "0.0.0.0",
            "10.0.0.1",
            "[::ffff:127.0.0.1]",
            "[::]",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
