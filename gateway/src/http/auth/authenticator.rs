//! Finds the caller of a request.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use axum::http::{HeaderMap, Method, header};
use everturn_store::{ConsentOf, KeyKind, OwnerRefusal};
use ipnet::IpNet;

use super::{
    caller::Caller,
    cookie,
    keys::{Invalid, KeyRing},
    origin,
    owners::OwnerRing,
    refusal::AuthRefusal,
    refused_sign_ins::RefusedSignIns,
    secret::Secret,
    token::Tokens,
};
use crate::{
    config::{AuthConfig, GatewayConfig},
    connections::client::{self, Peer},
    http::{
        audit::{Audit, Refusals, Source},
        problem::{Code, Problem},
    },
    ports::Ports,
};

/// Finds the caller of a request.
pub(crate) struct Authenticator {
    pub(super) config: AuthConfig,
    trusted_proxies: Vec<IpNet>,
    pub(super) keys: Arc<KeyRing>,
    pub(super) owners: Arc<OwnerRing>,
    tokens: Option<Tokens>,
    sign_ins: RefusedSignIns,
    pub(super) audit: Audit,
    refusals: Arc<Refusals>,
}

impl Authenticator {
    pub(crate) fn new(config: &GatewayConfig, ports: &Ports, audit: Audit) -> Self {
        let refusals = Refusals::new(audit.clone(), &config.audit);
        let (config, limits) = (&config.auth, &config.connections);
        let keys = Arc::new(KeyRing::new(Arc::clone(&ports.keys), config));
        let owners = Arc::new(OwnerRing::new(Arc::clone(&ports.owners), config));
        Self {
            config: config.clone(),
            trusted_proxies: limits.trusted_proxies.clone(),
            keys,
            owners,
            tokens: Tokens::new(&config.oidc),
            sign_ins: RefusedSignIns::new(limits),
            audit,
            refusals,
        }
    }

    /// Returns the caller of a request. A presented credential must be valid, even on a gateway that requires no
    /// credential. The header takes precedence over the cookie.
    pub(super) async fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<Caller, AuthRefusal> {
        let found = self.found(method, headers, &source).await;
        found.map(|caller| Caller { source, ..caller })
    }

    async fn found(
        &self,
        method: &Method,
        headers: &HeaderMap,
        source: &Source,
    ) -> Result<Caller, AuthRefusal> {
        let page = || origin::is_trusted_page(headers, &self.config);
        // The address is unknown when another server than `serve` serves the router.
        let address = source.address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        if let Some(credential) = bearer(headers)? {
            let checked = self.bearer(credential);
            return self.within_limit(credential, address, checked).await;
        }
        if let Some(cookie) = cookie::sent(headers, &self.config) {
            // A browser sends the cookie by itself, and therefore the page must be a trusted page.
            if !method.is_safe() && page() != Some(true) {
                return Err(AuthRefusal::Origin);
            }
            let checked = self.session(cookie, headers);
            return self.within_limit(cookie, address, checked).await;
        }
        if self.config.required {
            return Err(AuthRefusal::Missing);
        }
        // Without required credentials, every client that reaches the gateway may use it, and every page in a browser
        // on the machine reaches the gateway.
        if !method.is_safe() && page() == Some(false) {
            return Err(AuthRefusal::Origin);
        }
        if !origin::is_known_host(headers, &self.config) {
            return Err(AuthRefusal::Host);
        }
        Ok(Caller::anonymous(self.config.anonymous_scopes))
    }

    /// Checks a credential, unless the address has sent too many refused credentials.
    async fn within_limit(
        &self,
        credential: &str,
        address: IpAddr,
        check: impl Future<Output = Result<Caller, AuthRefusal>>,
    ) -> Result<Caller, AuthRefusal> {
        if let Some(wait) = self.sign_ins.wait(credential, address) {
            return Err(barred(wait));
        }
        let checked = check.await;
        match &checked {
            Ok(_) => self.sign_ins.accepted(credential),
            Err(refusal) if refusal.reason().is_some() => {
                self.sign_ins.refused(credential, address);
            }
            // The gateway could not check the credential.
            Err(_) => {}
        }
        checked
    }

    async fn bearer(&self, credential: &str) -> Result<Caller, AuthRefusal> {
        match (Secret::parse(credential), &self.tokens) {
            (Some(secret), _) if secret.kind() == KeyKind::Key => {
                let verified = self.keys.verify(&secret).await?;
                let key = verified.map_err(|invalid| match invalid {
                    Invalid::Unknown => {
                        AuthRefusal::Invalid("The key is not known to the gateway.")
                    }
                    Invalid::Revoked(key) => AuthRefusal::Ended {
                        why: "The key was revoked.",
                        key,
                    },
                    Invalid::Expired(key) => AuthRefusal::Ended {
                        why: "The key has expired.",
                        key,
                    },
                    Invalid::OwnerRefused(key) => AuthRefusal::OwnerRefused(Some(key)),
                })?;
                Ok(Caller::of_key(&key))
            }
            (None, Some(tokens)) => self.not_refused(tokens.verify(credential).await?).await,
            _ => Err(AuthRefusal::Invalid(
                "The credential is not a key of the gateway.",
            )),
        }
    }

    /// Refuses the caller of a token when an admin ended the sign-in or refuses the owner.
    async fn not_refused(&self, caller: Caller) -> Result<Caller, AuthRefusal> {
        match self.owners.refusal(&caller).await? {
            None => Ok(caller),
            Some(OwnerRefusal::Refused) => Err(AuthRefusal::OwnerRefused(None)),
            Some(OwnerRefusal::Ended) => Err(AuthRefusal::Invalid(
                "The sign-in was ended by an admin. Sign in again for a newer token.",
            )),
        }
    }

    async fn session(&self, cookie: &str, headers: &HeaderMap) -> Result<Caller, AuthRefusal> {
        let secret = Secret::parse(cookie).filter(|secret| secret.kind() == KeyKind::Session);
        let (why, ended) = match secret {
            None => ("The session cannot be read.", None),
            Some(secret) => match self.keys.verify(&secret).await? {
                Ok(key) => return Ok(Caller::of_key(&key)),
                Err(Invalid::Unknown) => ("The session is not known to the gateway.", None),
                Err(Invalid::Revoked(session) | Invalid::Expired(session)) => {
                    ("The session has ended.", Some(session))
                }
                Err(Invalid::OwnerRefused(session)) => {
                    return Err(AuthRefusal::OwnerRefused(Some(session)));
                }
            },
        };
        Err(match cookie::forget(headers, &self.config) {
            None => AuthRefusal::Invalid(why),
            Some(forget) => AuthRefusal::Session { why, forget, ended },
        })
    }

    /// Returns false when the browser of the request has a session of a person other than the person of a consent, or when
    /// a page of another site sent the request.
    pub(crate) async fn may_be_in_browser(
        &self,
        of: &ConsentOf,
        headers: &HeaderMap,
        source: &Source,
    ) -> bool {
        if origin::is_trusted_page(headers, &self.config) == Some(false) {
            return false;
        }
        let Some(cookie) = cookie::sent(headers, &self.config) else {
            return true;
        };
        let address = source.address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        let session = self.session(cookie, headers);
        let caller = self.within_limit(cookie, address, session).await;
        // A session that has ended is no other person's.
        caller.map_or(true, |caller| {
            caller.access.sees(&of.tenant_id, Some(&of.owner_id))
        })
    }

    /// Returns the source of a request.
    pub(crate) fn source(&self, headers: &HeaderMap, peer: Option<Peer>) -> Source {
        let address = peer.map(|peer| client::address(peer, headers, &self.trusted_proxies));
        Source::of(headers, address)
    }

    /// Returns the id of the key or session in the request. The id is unproven, because the secret was not checked.
    pub(super) fn claimed(&self, headers: &HeaderMap) -> Option<String> {
        let credential = bearer(headers).ok()?;
        let credential = credential.or_else(|| cookie::sent(headers, &self.config))?;
        Secret::parse(credential).map(|secret| secret.id().to_owned())
    }

    /// Returns the refusals, for the audit trail.
    pub(crate) fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }
}

/// Makes the refusal of an address that has sent too many refused credentials.
fn barred(wait: Duration) -> AuthRefusal {
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
    let detail = "Too many refused credentials were sent from your address. Wait before you send a valid credential.";
    AuthRefusal::Unknown(
        Problem::new(Code::RateLimited, detail).retry_after_s(seconds.saturating_add(1)),
    )
}

/// Returns the credential of the header `Authorization`.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, AuthRefusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).into_iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let words = value.to_str().ok().and_then(|text| text.split_once(' '));
    match words {
        Some((scheme, credential))
            if scheme.eq_ignore_ascii_case("bearer") && values.next().is_none() =>
        {
            Ok(Some(credential.trim()))
        }
        _ => Err(AuthRefusal::Invalid(
            "The header Authorization must be: Bearer, a space, and the credential.",
        )),
    }
}
