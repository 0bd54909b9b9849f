//! The address of the client. Behind trusted proxies, the proxies name the client's address in `X-Forwarded-For`.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The number of addresses that are read from the header: longer than any real chain of proxies.
const MAX_HOPS: usize = 16;

/// The other side of the connection: a client, or a proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Returns the client's address, as far as trusted proxies vouch for the address: the last address of `X-Forwarded-For`
/// that is not a trusted proxy. Without a trusted proxy as the peer, the peer's address counts, because any client may
/// write the header. Earlier addresses in the header are not trusted for the same reason.
pub(crate) fn address(peer: Peer, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let mut client = peer.0.to_canonical();
    if !is_trusted(client) {
        return client;
    }
    let values = headers.get_all(FORWARDED_FOR).into_iter().rev();
    let hops = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.rsplit(','));
    for hop in hops.take(MAX_HOPS) {
        // A trusted proxy writes addresses. Any other text was in the header before the proxy got the request.
        let Ok(address) = hop.trim().parse::<IpAddr>() else {
            return client;
        };
        client = address.to_canonical();
        if !is_trusted(client) {
            return client;
        }
    }
    client
}

/// Returns the address under which limits count a client: an IPv4 address, or the /64 network of an IPv6 address,
/// because a client usually has the whole network.
pub(crate) fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(network.into())
        }
        IpAddr::V4(address) => IpAddr::V4(address),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let trusted: [IpNet; 2] = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let ask = |peer: &str, lines: &[&'static str]| {
            let headers = lines
                .iter()
                .map(|line| (FORWARDED_FOR, line.parse().unwrap()));
            let mut map = HeaderMap::new();
            headers.for_each(|(name, value)| {
                map.append(name, value);
            });
            address(Peer(peer.parse().unwrap()), &map, &trusted).to_string()
        };
        // A client without a proxy may write any header.
        assert_eq!(ask("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(ask("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(ask("::ffff:10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        // The client wrote the first address.
        assert_eq!(
            ask("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(ask("fd00::1", &["1.1.1.1", "2001:db8::5"]), "2001:db8::5");
        assert_eq!(ask("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(ask("10.0.0.1", &["1.1.1.1, nobody, 10.0.0.3"]), "10.0.0.3");
        assert_eq!(ask("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn an_ipv6_network_counts_as_one() {
        let count = |text: &str| counted(text.parse().unwrap()).to_string();
        assert_eq!(count("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(count("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(count("192.0.2.1"), "192.0.2.1");
    }

    proptest! {
        #[test]
        fn any_forwarded_address_is_one_that_a_trusted_proxy_told(
            lines in prop::collection::vec("[ -~]{0,20}|[0-9.]{1,15}(, ?[0-9a-f:.]{1,20}){0,20}", 0..4),
        ) {
            let trusted: [IpNet; 1] = ["10.0.0.0/8".parse().unwrap()];
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            let stranger = Peer("203.0.113.9".parse().unwrap());
            prop_assert_eq!(address(stranger, &headers, &trusted), stranger.0);
            let proxy = Peer("10.0.0.1".parse().unwrap());
            let told = address(proxy, &headers, &trusted);
            let is_told = lines.iter().flat_map(|line| line.split(',')).filter_map(|hop| hop.trim().parse::<IpAddr>().ok());
            prop_assert!(told == proxy.0 || is_told.map(|hop| hop.to_canonical()).any(|hop| hop == told), "{}", told);
            let _ = counted(told);
        }
    }
}
