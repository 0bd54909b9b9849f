//! Discovers how to request tokens: the server's metadata, and the metadata of its authorization server.

use reqwest::{Method, StatusCode, header::WWW_AUTHENTICATE};

use super::{
    challenge::Challenge,
    error::AccessError,
    exchange,
    grant::{Client, Grant},
    metadata::{self, Authority, TokenEndpoint},
    options::{OAuthOptions, TokenSource},
};
use crate::egress::Egress;

/// The settings of a server's tokens, and the way to its metadata.
pub(super) struct Discovery {
    pub(super) options: OAuthOptions,
    /// The tenant whose client is used, with a file per tenant.
    pub(super) tenant_id: Option<String>,
    pub(super) egress: Egress,
}

/// How to request tokens.
#[derive(Clone)]
pub(super) struct Discovered {
    pub(super) grant: Grant,
    pub(super) authority: Authority,
}

impl Discovery {
    /// Discovers how to request tokens.
    pub(super) async fn run(&self, challenge: &Challenge) -> Result<Discovered, AccessError> {
        let server = &self.options.server;
        let (authority, resource, of_server) = match &self.options.issuer {
            TokenSource::Endpoint {
                url,
                method,
                authorization_url,
            } => {
                let authority = Authority {
                    token: TokenEndpoint {
                        url: url.clone(),
                        method: *method,
                    },
                    authorization: authorization_url.clone(),
                    revocation: None,
                    // The operator says so.
                    has_pkce: true,
                };
                (authority, server.to_string(), Vec::new())
            }
            TokenSource::Issuer(issuer) => {
                let resource = self.resource(challenge, issuer).await?;
                let authority = self.authority(issuer).await?;
                (authority, resource.id, resource.scopes)
            }
        };
        let scopes = self.options.scopes.clone();
        let grant = Grant {
            endpoint: authority.token.clone(),
            resource,
            scopes: scopes.or(challenge.scopes.clone()).unwrap_or(of_server),
        };
        Ok(Discovered { grant, authority })
    }

    /// Returns the client.
    pub(super) async fn client(&self) -> Result<Client, AccessError> {
        let tenant_id = self.tenant_id.as_deref();
        let secret = match &self.options.client_secret {
            Some(secret) => Some(secret.read(tenant_id).await?),
            None => None,
        };
        Ok(Client {
            id: self.options.client_id.read(tenant_id).await?,
            secret,
        })
    }

    /// Returns the challenge of the server, from a request without a token.
    pub(super) async fn challenge(&self) -> Result<Challenge, AccessError> {
        let server = &self.options.server;
        if matches!(self.options.issuer, TokenSource::Endpoint { .. }) {
            return Ok(Challenge::default());
        }
        let request = exchange::request(Method::GET, server);
        let answer = exchange::send(&self.egress, request, Some(server)).await?;
        let header = answer.headers.get(WWW_AUTHENTICATE);
        let header = header.and_then(|header| header.to_str().ok());
        let is_refused = answer.status == StatusCode::UNAUTHORIZED;
        let header = header.filter(|_| is_refused);
        Ok(header.map(Challenge::parse).unwrap_or_default())
    }

    /// Returns the server's metadata: from the URL in its challenge, or else from the standard's URLs.
    async fn resource(
        &self,
        challenge: &Challenge,
        issuer: &str,
    ) -> Result<metadata::Resource, AccessError> {
        let server = &self.options.server;
        let candidates = match &challenge.resource_metadata {
            Some(candidate) => vec![metadata::checked_url("`resource_metadata`", candidate)?],
            None => metadata::urls_of_resource(server),
        };
        for candidate in &candidates {
            if let Some(body) = exchange::document(&self.egress, candidate, Some(server)).await? {
                return metadata::resource(&body, server, issuer);
            }
        }
        Err(AccessError::Metadata(
            "the server has no metadata of a protected resource (RFC 9728). Write the token endpoint into `token_url`"
                .to_owned(),
        ))
    }

    async fn authority(&self, issuer: &str) -> Result<Authority, AccessError> {
        let url = metadata::checked_url("`issuer`", issuer)?;
        let has_secret = self.options.client_secret.is_some();
        for candidate in metadata::urls_of_issuer(&url) {
            if let Some(body) = exchange::document(&self.egress, &candidate, None).await? {
                return metadata::authority(&body, issuer, has_secret);
            }
        }
        Err(AccessError::Metadata(
            "the authorization server has no metadata (RFC 8414, OpenID Discovery). Check `issuer`, or write `token_url`"
                .to_owned(),
        ))
    }
}
