//! The operator's settings for tokens of a server: `[mcp.NAME.oauth]` of everturn.toml.

use std::fmt;

use everturn_proto::is_private;
use reqwest::Url;

use super::error::AccessError;
use crate::mcp::secrets::SecretFile;

/// The settings for requesting tokens for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthOptions {
    /// The server's URL, as configured: the resource of the tokens.
    pub server: Url,
    /// The source of tokens.
    pub issuer: TokenSource,
    /// The way to tokens.
    pub grant: OAuthGrant,
    /// The client's id at the source.
    pub client_id: SecretSource,
    /// The client's secret at the source. `None`: a public client, which only the grant `authorization_code` allows.
    pub client_secret: Option<SecretSource>,
    /// The requested scopes; `None` requests the scopes that the server names.
    pub scopes: Option<Vec<String>>,
}

/// The way to tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthGrant {
    /// The tokens are the installation's own (`client_credentials`).
    ClientCredentials,
    /// Each person consents to the use of the server in the person's name (`authorization_code` with PKCE).
    AuthorizationCode,
}

/// The source of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// An authorization server, by the issuer identifier in its metadata. The token endpoint is discovered.
    Issuer(String),
    /// A token endpoint, for servers that do not name an authorization server.
    Endpoint {
        /// The URL of the endpoint.
        url: Url,
        /// The client's way of authentication.
        method: ClientAuth,
        /// The URL where people consent; `None` with the grant `client_credentials`.
        authorization_url: Option<Url>,
    },
}

/// The way in which a client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// The secret is in the header `Authorization` (`client_secret_basic`).
    Basic,
    /// The secret is in the body (`client_secret_post`).
    Post,
}

/// The location of a secret. The secret stays out of logs.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret itself.
    Value(String),
    /// A file, read for every new token.
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

/// Returns true for a URL that may receive tokens and secrets, because the connection is private.
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
