//! Where tools may connect to: the one place that decides, for every HTTP request a tool makes.
//!
//! A request goes to the public internet and to what the operator allows, nowhere else. What a URL looks like does not
//! matter: the parsed or resolved address decides, so that odd spellings (0x7f.1, 2130706433, a trailing dot) are what
//! they stand for. The connection goes to the address that was checked, because the check is in the resolver that the
//! connection uses: there is no second look-up, and so no DNS rebinding. Every redirect passes the same check.
//!
//! - `addresses`: which addresses are public, and networks as an operator writes them
//! - `client`: the HTTP client that obeys
//! - `signature`: for whom a request is made, and the proof of it

mod addresses;
mod client;
mod signature;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;
use url::Host;

pub use client::{Egress, EgressError, Incoming, Outgoing};
pub use signature::{Signer, SigningKey};

/// Where requests may go besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    networks: Vec<IpNet>,
    hosts: Vec<AllowedHost>,
}

/// A host that is allowed by its name, wherever the name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    host: String,
    /// `None` allows all ports.
    port: Option<u16>,
}

/// A request that may not be sent to its destination. Its text names no address: the model reads it, and need not learn
/// what is in an internal network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is refused: {why}")]
pub struct Refused {
    what: String,
    why: &'static str,
}

/// What else has to be checked about a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// Allowed by its name.
    Allowed,
    /// Every address of its name must pass [`EgressPolicy::check_address`].
    Checked,
}

impl EgressPolicy {
    /// Allows one more destination: a network (10.1.0.0/16), an address (10.1.2.3), or a host by its name or address,
    /// with one port (localhost:8080) or all of them.
    pub fn allow(&mut self, entry: &str) -> Result<(), String> {
        if entry.contains('/') {
            self.networks.push(addresses::network(entry)?);
        } else if let Ok(address) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
            self.networks.push(IpNet::from(address));
        } else {
            self.hosts.push(AllowedHost::parse(entry)?);
        }
        Ok(())
    }

    /// Checks what can be seen of a URL before its name is resolved.
    fn check_url(&self, url: &Url) -> Result<Route, Refused> {
        // The path and the query may hold secrets.
        let refused = |why| Refused {
            what: format!("`{}`", url.origin().ascii_serialization()),
            why,
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused {
                what: format!("The scheme `{}`", url.scheme()),
                why: "only http and https are allowed.",
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("a URL with a user or a password is not allowed."));
        }
        let host = url.host().ok_or_else(|| refused("it has no host."))?;
        if self
            .hosts
            .iter()
            .any(|allowed| allowed.is(&host, url.port_or_known_default()))
        {
            return Ok(Route::Allowed);
        }
        let address: IpAddr = match &host {
            Host::Ipv4(address) => (*address).into(),
            Host::Ipv6(address) => (*address).into(),
            Host::Domain(_) => return Ok(Route::Checked),
        };
        self.check_address(address, &host.to_string())?;
        Ok(Route::Checked)
    }

    /// Checks an address that `host` stands for.
    fn check_address(&self, address: IpAddr, host: &str) -> Result<(), Refused> {
        let destination = addresses::destination(address);
        let is_allowed = self
            .networks
            .iter()
            .any(|network| network.contains(&destination) || network.contains(&address));
        if is_allowed || addresses::is_public(destination) {
            return Ok(());
        }
        tracing::warn!(host, %address, "a tool's request was refused: not a public address, nor one of [egress] allow");
        Err(Refused {
            what: format!("`{host}`"),
            why: "it is not an address that tools may connect to.",
        })
    }
}

impl AllowedHost {
    fn parse(entry: &str) -> Result<Self, String> {
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (entry, None),
        };
        let port = port
            .map(str::parse)
            .transpose()
            .map_err(|_| "its port is not a number from 0 to 65535".to_owned())?;
        let host = Host::parse(host).map_err(|_| {
            "write a network (10.1.0.0/16), an address (10.1.2.3), or a host with or without a port (localhost:8080)"
        })?;
        Ok(Self {
            host: plain(&host),
            port,
        })
    }

    fn is(&self, host: &Host<&str>, port: Option<u16>) -> bool {
        self.host == plain(host) && (self.port.is_none() || self.port == port)
    }
}

/// A host as text, without the dot at the end that means the same name.
fn plain<S: AsRef<str>>(host: &Host<S>) -> String {
    match host {
        Host::Domain(name) => name.as_ref().trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    }
}
