//! What the operator says about tokens for a server: `[mcp.NAME.oauth]` of everturn.toml.

use std::fmt;

use everturn_proto::is_private;
use reqwest::Url;

use super::error::AccessError;
use crate::tools::mcp::secrets::SecretFile;

/// How tokens for a server are asked for.
#[derive(Debug, Clone)]
pub struct OAuthOptions {
    /// The server, as its URL is written: what tokens are for.
    pub server: Url,
    /// Who gives tokens.
    pub issuer: TokenSource,
    /// The id that the client has there.
    pub client_id: SecretSource,
    /// The secret that the client has there.
    pub client_secret: SecretSource,
    /// What is asked for; `None`: what the server says.
    pub scopes: Option<Vec<String>>,
}

/// Who gives tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// An authorization server, by its issuer identifier as it is written in its metadata. The rest is discovered.
    Issuer(String),
    /// A token endpoint, for servers that do not tell of their authorization server.
    Endpoint {
        /// Where it is.
        url: Url,
        /// How the client says who it is.
        method: ClientAuth,
    },
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// The secret is in the header `Authorization` (`client_secret_basic`).
    Basic,
    /// The secret is in the body (`client_secret_post`).
    Post,
}

/// Where a secret is. It stays out of logs.
#[derive(Clone)]
pub enum SecretSource {
    /// It is this text.
    Value(String),
    /// It is in a file, which is read for each token.
    File(SecretFile),
}

impl SecretSource {
    pub(super) async fn read(&self, tenant_id: Option<&str>) -> Result<String, AccessError> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(file) => file.read(tenant_id).await.map_err(AccessError::Secret),
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value(…)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}

/// True for a URL that tokens and secrets may be sent to: nobody on the way can read them.
pub fn is_private_to_its_host(url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    let is_private = is_private(url.scheme(), url.host_str());
    is_private && url.has_host() && !has_user && url.fragment().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_be_without_tls() {
        let is_fit = |text: &str| is_private_to_its_host(&text.parse().unwrap());
        for good in [
            "https://login.example.com/token",
            "http://localhost:8080/",
            "http://127.0.0.1:1/",
            "http://[::1]/",
        ] {
            assert!(is_fit(good), "{good}");
        }
        for bad in [
            "http://login.example.com/",
            "http://10.0.0.1/",
            "http://localhost.example.com/",
            "ftp://localhost/",
            "https://user@login.example.com/",
            "https://login.example.com/#a",
        ] {
            assert!(!is_fit(bad), "{bad}");
        }
    }

    #[test]
    fn a_secret_stays_out_of_logs() {
        let shown = format!("{:?}", SecretSource::Value("hunter2".into()));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
