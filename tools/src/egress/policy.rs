//! The policy: the destinations that a tool's request may have.

use std::{borrow::Cow, net::IpAddr};

use ipnet::IpNet;
use reqwest::Url;
use url::Host;

use super::addresses;

/// The destinations that are allowed besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    networks: Vec<IpNet>,
    hosts: Vec<AllowedHost>,
}

/// A host that is allowed by name, whatever address the name resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    host: String,
    /// The allowed port; `None` allows all ports.
    port: Option<u16>,
}

/// A refused destination. The text contains no address, because the model reads the text and must not learn about an
/// internal network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is refused: {why}")]
pub struct Refused {
    what: String,
    why: Cow<'static, str>,
}

/// The check that remains for a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// None: the host is allowed by name.
    Allowed,
    /// [`EgressPolicy::check_address`] for every address of the host name.
    Checked,
}

impl EgressPolicy {
    /// Allows a further destination: a network (10.1.0.0/16), an address (10.1.2.3), or a host by name or address,
    /// with a port (localhost:8080) or with all ports.
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

    /// Checks a URL before its name is resolved.
    pub(super) fn check_url(&self, url: &Url) -> Result<Route, Refused> {
        // The path and the query may hold secrets, so the message leaves them out.
        let refused = |why: &'static str| Refused {
            what: format!("`{}`", url.origin().ascii_serialization()),
            why: why.into(),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused {
                what: format!("The scheme `{}`", url.scheme()),
                why: "only http and https are allowed.".into(),
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

    /// Checks an address of `host`.
    pub(super) fn check_address(&self, address: IpAddr, host: &str) -> Result<(), Refused> {
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
            why: format!(
                "tools connect to public addresses only. To allow the host, add {host:?} to `allow` under `[egress]` in everturn.toml."
            )
            .into(),
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

/// Returns a host as text, without the optional dot at the end.
fn plain<S: AsRef<str>>(host: &Host<S>) -> String {
    match host {
        Host::Domain(name) => name.as_ref().trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    }
}
