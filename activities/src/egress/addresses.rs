//! Which addresses are the public internet, from IANA's registries of special-purpose addresses (RFC 6890 and its
//! updates), and networks as an operator writes them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A network, like 10.1.0.0/16 or fd00::/8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// IPv4 that is not a public unicast address.
const SPECIAL_V4: [Network; 16] = [
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

/// The only IPv6 that IANA gives out for unicast. Outside of it: loopback, unspecified, unique local (fd00:ec2::254
/// among it), link-local, site-local, multicast, and every form that embeds IPv4 but 6to4, Teredo and NAT64.
const GLOBAL_V6: Network = v6([0x2000, 0], 3);

/// Networks within it that are not public.
const SPECIAL_V6: [Network; 4] = [
    v6([0x2001, 0], 23),     // IETF protocols: Teredo, ORCHID, benchmarks
    v6([0x2001, 0xdb8], 32), // documentation
    v6([0x2002, 0], 16),     // 6to4: embeds an IPv4 address
    v6([0x3fff, 0], 20),     // documentation
];

/// The well-known prefix of NAT64 (RFC 6052): where there is no IPv4, public names resolve to this.
const NAT64: Network = v6([0x64, 0xff9b], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix: u32) -> Network {
    Network {
        address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        prefix,
    }
}

const fn v6([a, b]: [u16; 2], prefix: u32) -> Network {
    Network {
        address: IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)),
        prefix,
    }
}

/// True for a public unicast address.
pub(super) fn is_public(address: IpAddr) -> bool {
    let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
    match address {
        IpAddr::V4(_) => !is_in(&SPECIAL_V4),
        IpAddr::V6(_) => GLOBAL_V6.contains(address) && !is_in(&SPECIAL_V6),
    }
}

/// The address that packets in the end go to: IPv4 out of its mapped form and out of NAT64.
pub(super) fn destination(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None if NAT64.contains(address) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        None => address,
    }
}

impl Network {
    /// The network of one address.
    pub(super) fn of(address: IpAddr) -> Self {
        Self {
            address,
            prefix: if address.is_ipv4() { 32 } else { 128 },
        }
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(32 - self.prefix)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(128 - self.prefix)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }

    /// Its address with nothing behind the prefix.
    fn first(&self) -> IpAddr {
        let host_bits = Self::of(self.address).prefix - self.prefix;
        match self.address {
            IpAddr::V4(v4) => {
                Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(host_bits).unwrap_or(0))
                    .into()
            }
            IpAddr::V6(v6) => {
                Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(host_bits).unwrap_or(0))
                    .into()
            }
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let network = Self {
                address: address.parse().ok()?,
                prefix: prefix.parse().ok()?,
            };
            (network.prefix <= Self::of(network.address).prefix).then_some(network)
        });
        let network = parsed.ok_or("a network is written like 10.1.0.0/16 or fd00::/8")?;
        // Whoever writes 10.1.2.3/16 may have meant one address.
        match network.first() {
            first if first == network.address => Ok(network),
            first => Err(format!(
                "it has bits behind its prefix; write {first}/{} or {}",
                network.prefix, network.address
            )),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
