//! Refuses connections to other machines without TLS or without a check of the server's certificate, unless the
//! operator allows the connection ([`AllowedPlaintext`](allowed::AllowedPlaintext)).
//!
//! - here: the checks before any connection is made
//! - `allowed`: the connections that the operator allows without TLS
//! - `certificates`: certificate files that each new connection to Temporal reads again
//!
//! Must not be here: connecting (`connections.rs`). The clients of PostgreSQL and Redis read their certificate files
//! themselves.

pub(crate) mod allowed;
pub(crate) mod certificates;
#[cfg(test)]
mod tests;

use everturn_proto::is_loopback;
use everturn_store::Peer;
use everturn_stream::RedisPeer;
use temporalio_client::ConnectionOptions;

use self::allowed::Link;
use crate::cli::Common;

/// A connection that an attacker on the network could read or answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    /// PostgreSQL, with another mode than `verify-full`.
    #[error(
        "refusing to connect to PostgreSQL at {host} with sslmode={sslmode}: an attacker on the network could {}. Write \
         `?sslmode=verify-full&sslrootcert=/path/to/ca.pem` at the end of EVERTURN_DATABASE (the public authorities count \
         in any case), or, on a network without attackers, allow plain text with EVERTURN_ALLOW_PLAINTEXT=database",
        lack_of(.sslmode)
    )]
    Database {
        /// The server's name or address.
        host: String,
        /// The configured `sslmode`.
        sslmode: &'static str,
    },
    /// Redis, without TLS.
    #[error(
        "refusing to connect to Redis at {0} without TLS: an attacker on the network could read the models' texts \
         and the password. Write rediss://… in EVERTURN_REDIS (with `?sslrootcert=/path/to/ca.pem` for an authority of your \
         own), or, on a network without attackers, allow plain text with EVERTURN_ALLOW_PLAINTEXT=redis"
    )]
    Redis(String),
    /// Temporal, without TLS.
    #[error(
        "refusing to connect to Temporal at {0} without TLS: an attacker on the network could start and change turns. Set \
         TEMPORAL_TLS=true (with TEMPORAL_TLS_SERVER_CA_CERT_PATH for an authority of your own), or, on a network \
         without attackers, allow plain text with EVERTURN_ALLOW_PLAINTEXT=temporal"
    )]
    Temporal(String),
}

fn lack_of(sslmode: &str) -> &'static str {
    match sslmode {
        "require" => "pose as the server, because no certificate is checked",
        "verify-ca" => {
            "pose as the server with a certificate of any public authority, because no name is checked"
        }
        _ => "read and change everything",
    }
}

/// Refuses a database connection that an attacker could answer.
pub(crate) fn check_database(common: &Common) -> anyhow::Result<()> {
    match everturn_store::peer(&common.database())? {
        Peer::Server { host, sslmode } if sslmode != "verify-full" => {
            let exposed = Exposed::Database {
                host: host.clone(),
                sslmode,
            };
            refuse(common, Link::Database, &host, exposed)
        }
        Peer::Server { .. } | Peer::Local => Ok(()),
    }
}

/// Refuses a Redis without TLS.
pub(crate) fn check_redis(common: &Common) -> anyhow::Result<()> {
    let Some(url) = &common.redis else {
        return Ok(());
    };
    match everturn_stream::redis_peer(url)? {
        RedisPeer::Server {
            host,
            is_tls: false,
        } => refuse(common, Link::Redis, &host, Exposed::Redis(host.clone())),
        RedisPeer::Server { .. } | RedisPeer::Local => Ok(()),
    }
}

/// Refuses a Temporal connection without TLS. For the SDK, an address with `http://` means no TLS, whatever the other
/// settings are. Therefore, with TLS, the address gets `https://`.
pub(crate) fn check_temporal(
    common: &Common,
    options: &mut ConnectionOptions,
) -> anyhow::Result<()> {
    if options.tls_options.is_some() && options.target.set_scheme("https").is_err() {
        anyhow::bail!("TEMPORAL_ADDRESS is host:port, without a scheme");
    }
    if options.target.scheme() == "https" {
        return Ok(());
    }
    let host = options.target.host_str().unwrap_or_default().to_owned();
    let exposed = Exposed::Temporal(host.clone());
    refuse(common, Link::Temporal, &host, exposed)
}

fn refuse(common: &Common, link: Link, host: &str, exposed: Exposed) -> anyhow::Result<()> {
    if is_loopback(host) || common.allow_plaintext.has(link) {
        return Ok(());
    }
    Err(exposed.into())
}
