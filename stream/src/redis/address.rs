//! The address of Redis, and the certificates for TLS. Certificate files are read anew for every connection, so
//! an operator can replace the files while the process runs.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates,
};

use super::error::Error;

/// The largest certificate file that is read: some hundred certificates.
const MAX_CERTIFICATES_BYTES: u64 = 1024 * 1024;

/// URL parameters that name files, as in URLs of PostgreSQL.
const AUTHORITY: &str = "sslrootcert";
const CERTIFICATE: &str = "sslcert";
const KEY: &str = "sslkey";

/// The server that a Redis URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisPeer {
    /// A socket in the file system: no data leaves this machine.
    Local,
    /// A server on the network.
    Server {
        /// The server's name or IP address.
        host: String,
        /// Whether the connection uses TLS with checks of the server's certificate and name.
        is_tls: bool,
    },
}

/// The address of Redis, parsed from its URL.
#[derive(Debug, Clone)]
pub(super) struct Address {
    info: ConnectionInfo,
    /// The authority of the server's certificate; `None` means the system's public authorities.
    authority: Option<PathBuf>,
    /// The client's certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let url = redis::parse_redis_url(text)
            .ok_or(Error::Url("it begins with redis:// or rediss://"))?;
        let file = |name: &str| {
            let mut pairs = url.query_pairs();
            let found = pairs.find(|(key, _)| key == name);
            found.map(|(_, value)| PathBuf::from(value.into_owned()))
        };
        let (authority, certificate, key) = (file(AUTHORITY), file(CERTIFICATE), file(KEY));
        let info = url.into_connection_info()?;
        let is_tls = match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(Error::Url(
                    "`#insecure` at its end would take any certificate; name the authority of the server's certificate \
                     with `?sslrootcert=/path/to/ca.pem`",
                ));
            }
            ConnectionAddr::TcpTls { .. } => true,
            _ => false,
        };
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(Error::Url("`sslcert` and `sslkey` go together")),
        };
        if !is_tls && (authority.is_some() || identity.is_some()) {
            return Err(Error::Url(
                "`sslrootcert`, `sslcert` and `sslkey` are for TLS; it begins with rediss:// then",
            ));
        }
        // Calls that share a connection are small, and must not wait for the TCP acknowledgement of earlier calls.
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        Ok(Self {
            info: info.set_tcp_settings(tcp),
            authority,
            identity,
        })
    }

    pub(super) fn peer(&self) -> RedisPeer {
        let server = |host: &str, is_tls| RedisPeer::Server {
            host: host.to_owned(),
            is_tls,
        };
        match self.info.addr() {
            ConnectionAddr::Tcp(host, _) => server(host, false),
            ConnectionAddr::TcpTls { host, .. } => server(host, true),
            _ => RedisPeer::Local,
        }
    }

    /// Returns a client for one connection, with the certificate files as they are now.
    pub(super) fn client(&self) -> Result<Client, Error> {
        let info = self.info.clone();
        if self.authority.is_none() && self.identity.is_none() {
            return Ok(Client::open(info)?);
        }
        let client_tls = match &self.identity {
            Some((certificate, key)) => Some(ClientTlsConfig {
                client_cert: read(certificate)?,
                client_key: read(key)?,
            }),
            None => None,
        };
        let root_cert = self.authority.as_deref().map(read).transpose()?;
        let certificates = TlsCertificates {
            client_tls,
            root_cert,
        };
        Ok(Client::build_with_tls(info, certificates)?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |source: io::Error| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut content = Vec::new();
    let mut limited = file.take(MAX_CERTIFICATES_BYTES);
    limited.read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_url_says_who_answers() {
        let server = |host: &str, is_tls| RedisPeer::Server {
            host: host.to_owned(),
            is_tls,
        };
        let cases = [
            (
                "redis://:secret@redis.example",
                server("redis.example", false),
            ),
            ("rediss://redis.example:1/2", server("redis.example", true)),
            ("valkey://[::1]:1", server("::1", false)),
            ("rediss://r?sslrootcert=/ca.pem", server("r", true)),
            ("unix:///run/redis.sock", RedisPeer::Local),
        ];
        for (url, expected) in cases {
            assert_eq!(Address::parse(url).unwrap().peer(), expected, "{url}");
        }
    }

    #[test]
    fn what_would_check_nothing_is_refused_and_told_without_the_password() {
        let cases = [
            ("rediss://:secret@r#insecure", "#insecure"),
            ("redis://:secret@r?sslrootcert=/ca.pem", "rediss://"),
            ("rediss://:secret@r?sslcert=/c.pem", "go together"),
            ("http://:secret@r", "redis://"),
            ("rediss://:secret@[", "redis://"),
        ];
        for (url, expected) in cases {
            let told = Address::parse(url).unwrap_err().to_string();
            assert!(
                told.contains(expected) && !told.contains("secret"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let address = Address::parse("rediss://r?sslrootcert=/nowhere/ca.pem").unwrap();
        let told = address.client().unwrap_err().to_string();
        assert!(told.contains("/nowhere/ca.pem"), "{told}");
    }
}
