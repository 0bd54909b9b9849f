//! The consent of a person: the way to the authorization server and back (RFC 6749, 4.1, with PKCE of RFC 7636), and the end
//! of a consent.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::Utc;
use everturn_store::{ConsentOf, ConsentRequest, NewAuditEntry, NewConsentRequest};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::form_urlencoded;
use uuid::Uuid;

use super::{
    discovery::Discovery,
    error::AccessError,
    exchange,
    grant::{self, Client, Right},
    metadata::{Authority, TokenEndpoint},
    options::{OAuthOptions, TokenSource},
    tokens::{self, PersonTokens},
};
use crate::{
    consents::{ConsentStoreError, PersonConsents},
    egress::{Egress, Outgoing},
};

/// The time of a person for the consent. A person may first have to sign in, with a second factor.
const TIME: Duration = Duration::from_mins(10);
/// The most begun consents of a person. A person with many open tabs needs a few; further ones end the oldest.
const MAX_BEGUN: u32 = 5;
/// The use of a begun consent's sealed data.
const OF_BEGUN: &str = "begun";

/// A server that is used in the names of people.
pub struct ConsentServer {
    name: String,
    tenants: Vec<String>,
    oauth: OAuthOptions,
    egress: Egress,
}

/// The reason why a consent cannot begin or end.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// The authorization server, its metadata or the client.
    #[error("{reason} ({code})")]
    Access {
        /// The stable code.
        code: &'static str,
        /// The reason, for operators.
        reason: String,
    },
    /// The authorization server does not give tokens for the code.
    #[error("the authorization server does not take the answer of the browser")]
    Refused,
    /// The store or the keys.
    #[error(transparent)]
    Store(#[from] ConsentStoreError),
}

impl From<AccessError> for ConsentError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Request("invalid_grant") => Self::Refused,
            error => Self::Access {
                code: error.code(),
                reason: error.to_string(),
            },
        }
    }
}

/// What ends a begun consent.
#[derive(Serialize, Deserialize)]
struct Begun {
    verifier: String,
    redirect_uri: String,
    /// The server and the source at the begin. A changed configuration ends begun consents.
    server: String,
    token_url: String,
}

/// The answer that the browser brings from the authorization server.
#[derive(Debug, Clone, Copy)]
pub struct ConsentAnswer<'a> {
    /// The code.
    pub code: &'a str,
    /// The issuer by its own word (RFC 9207).
    pub issuer: Option<&'a str>,
}

impl ConsentServer {
    /// Makes the server of the name, for these tenants; an empty list means all tenants.
    pub(in crate::mcp) fn new(
        name: String,
        tenants: Vec<String>,
        oauth: OAuthOptions,
        egress: Egress,
    ) -> Self {
        Self {
            name,
            tenants,
            oauth,
            egress,
        }
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true when the tenant may use the server.
    pub fn serves(&self, tenant_id: &str) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|name| name == tenant_id)
    }

    /// Begins the consent of a person, and returns the URL of the authorization server for the person's browser.
    pub async fn begin(
        &self,
        consents: &PersonConsents,
        of: &ConsentOf,
        redirect_uri: &str,
    ) -> Result<String, ConsentError> {
        let discovery = self.discovery(of);
        let discovered = discovery.run(&discovery.challenge().await?).await?;
        let client = discovery.client().await?;
        let mut url = authorization_url(&discovered.authority)?;
        let (state, verifier) = (random(), random());
        let begun = Begun {
            verifier,
            redirect_uri: redirect_uri.to_owned(),
            server: self.oauth.server.to_string(),
            token_url: discovered.authority.token.url.to_string(),
        };
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &hash(&begun.verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &discovered.grant.resource);
        if !discovered.grant.scopes.is_empty() {
            let scopes = discovered.grant.scopes.join(" ");
            url.query_pairs_mut().append_pair("scope", &scopes);
        }
        let request = NewConsentRequest {
            state_hash: state_hash(&state),
            of: of.clone(),
            sealed: consents.seal(of, OF_BEGUN, &begun)?,
            time: TIME,
        };
        let begun = consents.rows().begin_consent(&request, MAX_BEGUN).await;
        begun.map_err(ConsentStoreError::from)?;
        Ok(url.into())
    }

    /// Ends a taken consent: exchanges the code for tokens, and stores the tokens with the audit entry.
    pub async fn end(
        &self,
        consents: &PersonConsents,
        taken: &ConsentRequest,
        answer: ConsentAnswer<'_>,
        audit: &NewAuditEntry,
    ) -> Result<(), ConsentError> {
        let of = &taken.of;
        let begun: Begun = consents.open(of, OF_BEGUN, &taken.sealed)?;
        // The answer of another authorization server would bring a code of that server.
        if let (Some(named), TokenSource::Issuer(issuer)) = (answer.issuer, &self.oauth.issuer)
            && named != issuer
        {
            return Err(ConsentError::Refused);
        }
        let discovery = self.discovery(of);
        let discovered = discovery.run(&discovery.challenge().await?).await?;
        let token_url = discovered.authority.token.url.as_str();
        if begun.server != self.oauth.server.as_str() || begun.token_url != token_url {
            return Err(ConsentError::Refused);
        }
        let client = discovery.client().await?;
        let right = Right::Code {
            code: answer.code,
            verifier: &begun.verifier,
            redirect_uri: &begun.redirect_uri,
        };
        let asked_at = Utc::now();
        let issued = discovered.grant.ask(&self.egress, &client, right).await?;
        let issued = PersonTokens::of(issued, &self.oauth, asked_at);
        Ok(tokens::give(consents, of, &issued, audit).await?)
    }

    /// Takes the tokens of an ended consent back at the authorization server, if the server can. A failure is logged,
    /// because the consent has ended here in any case.
    pub async fn revoke(&self, consents: &PersonConsents, of: &ConsentOf, sealed: &[u8]) {
        let Some(tokens) = tokens::opened(consents, of, sealed) else {
            return;
        };
        if !tokens.fits(&self.oauth) {
            return;
        }
        if let Err(error) = self.revoked(of, &tokens).await {
            tracing::warn!(
                server = of.server,
                tenant_id = of.tenant_id,
                code = error.code(),
                %error,
                "the tokens of an ended consent were not taken back at the authorization server"
            );
        }
    }

    async fn revoked(&self, of: &ConsentOf, tokens: &PersonTokens) -> Result<(), AccessError> {
        let discovery = self.discovery(of);
        let discovered = discovery.run(&discovery.challenge().await?).await?;
        let Some(url) = discovered.authority.revocation else {
            return Ok(());
        };
        let client = discovery.client().await?;
        let endpoint = TokenEndpoint {
            url,
            method: discovered.authority.token.method,
        };
        // The end of a refresh token ends its access tokens, too.
        let (token, kind) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let request = revocation(&endpoint, &client, token, kind)?;
        let answer = exchange::send(&self.egress, request, None).await?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(exchange::unexpected(&answer))
        }
    }

    fn discovery(&self, of: &ConsentOf) -> Discovery {
        Discovery {
            options: self.oauth.clone(),
            tenant_id: Some(of.tenant_id.clone()),
            egress: self.egress.clone(),
        }
    }
}

/// Makes the request that takes a token back (RFC 7009).
fn revocation(
    endpoint: &TokenEndpoint,
    client: &Client,
    token: &str,
    kind: &str,
) -> Result<Outgoing, AccessError> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("token", token);
    form.append_pair("token_type_hint", kind);
    grant::of_client(endpoint, client, form)
}

fn authorization_url(authority: &Authority) -> Result<reqwest::Url, AccessError> {
    if !authority.has_pkce {
        return Err(AccessError::Metadata(
            "the authorization server does not name S256 in `code_challenge_methods_supported` (PKCE), so a stolen code \
             would be enough for the tokens"
                .to_owned(),
        ));
    }
    authority.authorization.clone().ok_or_else(|| {
        AccessError::Metadata(
            "the authorization server has no `authorization_endpoint`, where people consent"
                .to_owned(),
        )
    })
}

/// Returns the hash under which the store has a begun consent. The state itself is a secret of the browser.
pub fn state_hash(state: &str) -> Vec<u8> {
    Sha256::digest(state.as_bytes()).to_vec()
}

/// Returns the challenge of a verifier (S256).
fn hash(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

/// Returns 64 characters with 244 random bits.
fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let challenge = hash("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(random().len(), 64);
        assert_ne!(random(), random());
    }

    #[test]
    fn no_person_is_sent_to_a_server_without_pkce() {
        let url = |text: &str| text.parse::<reqwest::Url>().unwrap();
        let authority = Authority {
            token: TokenEndpoint {
                url: url("https://login.example.com/token"),
                method: crate::mcp::ClientAuth::Post,
            },
            authorization: Some(url("https://login.example.com/authorize")),
            revocation: None,
            has_pkce: false,
        };
        let error = authorization_url(&authority).unwrap_err();
        assert!(error.to_string().contains("S256"), "{error}");
        let with = Authority {
            has_pkce: true,
            ..authority
        };
        assert!(authorization_url(&with).is_ok());
    }
}
