//! Public internet addresses, by IANA's registries of special-purpose addresses (RFC 6890 and its updates), and
//! networks in an operator's notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 networks that are not public unicast.
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),        // "this network", the unspecified address among it
    v4([10, 0, 0, 0], 8),       // private
    v4([100, 64, 0, 0], 10),    // carrier-grade NAT, and the metadata service of Alibaba Cloud
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // Azure's platform, reachable from every machine there
    v4([169, 254, 0, 0], 16),   // link-local, and the metadata services of most clouds
    v4([172, 16, 0, 0], 12),    // private
    v4([192, 0, 0, 0], 24),     // IETF protocols, and the metadata service of Oracle Cloud
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 88, 99, 0], 24),   // 6to4 relays
    v4([192, 168, 0, 0], 16),   // private
    v4([198, 18, 0, 0], 15),    // benchmarks
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, broadcast among it
];

/// The only IPv6 network that IANA assigns for unicast. Outside are loopback, unspecified, unique local (with
/// fd00:ec2::254), link-local, site-local, multicast, and every form that embeds IPv4 except 6to4, Teredo and NAT64.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0], 3);

/// Networks within [`GLOBAL_V6`] that are not public.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0], 23),     // IETF protocols: Teredo, ORCHID, benchmarks
    v6([0x2001, 0xdb8], 32), // documentation
    v6([0x2002, 0], 16),     // 6to4: embeds an IPv4 address
    v6([0x3fff, 0], 20),     // documentation
];

/// The well-known prefix of NAT64 (RFC 6052). On hosts without IPv4, public names resolve to the prefix.
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix_len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_len)
}

const fn v6([a, b]: [u16; 2], prefix_len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix_len)
}

/// Returns true for a public unicast address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|network| network.contains(&v4)),
        IpAddr::V6(v6) => {
            GLOBAL_V6.contains(&v6) && !SPECIAL_V6.iter().any(|network| network.contains(&v6))
        }
    }
}

/// Returns the final destination of packets: the IPv4 address inside a mapped or NAT64 address.
pub(super) fn destination(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        None => address,
    }
}

/// Parses a network in an operator's notation. The standard library parses the address and refuses leading zeros,
/// because some programs read them as octal.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let parsed = text.split_once('/').and_then(|(address, prefix_len)| {
        IpNet::new(address.parse().ok()?, prefix_len.parse().ok()?).ok()
    });
    let network = parsed.ok_or("a network is written like 10.1.0.0/16 or fd00::/8")?;
    // An operator who writes 10.1.2.3/16 may have meant a single address.
    if network.addr() == network.network() {
        Ok(network)
    } else {
        Err(format!(
            "the network has bits behind the prefix; write {} or {}",
            network.trunc(),
            network.addr()
        ))
    }
}
