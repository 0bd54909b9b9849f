//! The configuration of authentication. `config/src/auth.rs` checks the values.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use everturn_proto::is_private;
pub use jsonwebtoken::Algorithm;
use reqwest::Url;

use super::{
    origin::Origin,
    scope::{Scope, Scopes},
};

/// Algorithms a token may be signed with: asymmetric ones only. With a shared secret (HS256 …), every service that
/// checks tokens could also make them, and an attacker could present a public key as the secret.
pub const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// The settings of authentication: credentials, browser origins, sessions and identity providers.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// Refuse callers without a credential. Default false, for a gateway on loopback. Callers without a credential then
    /// belong to the default tenant with the scopes of `anonymous_scopes`. The gateway always checks a credential that a
    /// caller presents.
    pub required: bool,
    /// The scopes of callers without a credential. Default [`Scope::OF_USERS`]. No configuration file sets the field;
    /// `everturn dev` on a loopback address adds [`Scope::Calls`], because the person at the machine has the
    /// configuration with the agents' instructions.
    pub anonymous_scopes: Scopes,
    /// The gateway's origin for browsers. Its scheme decides how the session's cookie is kept. Pages of the origin are
    /// the gateway's own pages. Default none: then only `Sec-Fetch-Site` identifies the gateway's own pages, except on
    /// the gateway's machine.
    pub public_origin: Option<Origin>,
    /// Host names and addresses, beside those of this machine and of `public_origin`, under which callers without a
    /// credential may send requests. The gateway compares the host name that the browser asked for, because any site
    /// can point its own name at this machine. Default: an empty list. `None`: any host name, for a gateway behind a
    /// proxy that authenticates callers.
    pub allowed_hosts: Option<Vec<String>>,
    /// Trusted origins: their pages may call the gateway. Default none: only pages of the gateway's own origin.
    pub allowed_origins: Vec<Origin>,
    /// Also trust every loopback origin, like `http://localhost:5173`: the pages of development servers on the
    /// gateway's machine. Default false. No configuration file sets the field; `everturn dev` on a loopback address does.
    pub trusts_loopback_pages: bool,
    /// How long the gateway uses a key from memory after it read the key from the store. A revoked key keeps working
    /// for at most `key_cache`, and every key in use costs one query per `key_cache`. Default 5 s.
    pub key_cache: Duration,
    /// The most keys and sessions in memory. Default 10 000, of some 300 bytes each.
    pub max_cached_keys: usize,
    /// The longest lifetime of a browser session. Default 12 h: a working day.
    pub session_lifetime: Duration,
    /// The most open sessions per key, or per owner with tokens. A further session ends the oldest. Default 1000.
    pub max_sessions: NonZeroU32,
    /// The lifetime of a key that `everturn keys create` makes without `--expires`. Default `None`: until revocation.
    pub key_lifetime: Option<Duration>,
    /// How often an open stream checks whether its key was revoked. Default 10 s.
    pub stream_check: Duration,
    /// The accepted identity providers; empty by default. An issuer is listed once.
    pub oidc: Vec<OidcConfig>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        const MAX_SESSIONS: NonZeroU32 = NonZeroU32::new(1000).unwrap();
        Self {
            required: false,
            anonymous_scopes: Scopes::of_users(),
            public_origin: None,
            allowed_hosts: Some(Vec::new()),
            allowed_origins: Vec::new(),
            trusts_loopback_pages: false,
            key_cache: Duration::from_secs(5),
            max_cached_keys: 10_000,
            session_lifetime: Duration::from_hours(12),
            max_sessions: MAX_SESSIONS,
            key_lifetime: None,
            stream_check: Duration::from_secs(10),
            oidc: Vec::new(),
        }
    }
}

/// An accepted identity provider, and the meaning of its tokens' claims.
#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// The issuer, exactly as `iss` in its tokens. The issuer's discovery document names the keys.
    pub issuer: String,
    /// The tenants that the issuer's tokens may name. `None`: any. Two issuers of one gateway never share a tenant,
    /// because an issuer of a tenant decides the identity of every user in the tenant.
    pub tenants: Option<Vec<String>>,
    /// The required value in `aud`: the issuer's name for this API.
    pub audience: String,
    /// The accepted signature algorithms. Default RS256, because every issuer supports RS256.
    pub algorithms: Vec<Algorithm>,
    /// Claim with the tenant. Default `tenant`.
    pub tenant_claim: String,
    /// Claim with the scopes: words in one string, or a list. Default `scope`.
    pub scope_claim: String,
    /// The scopes granted by a word of the scope claim. Default: `read`, `write` and `approve` grant the scopes of
    /// equal name. A word like `admin` may have another meaning at an issuer, and therefore grants a scope only when
    /// configured.
    pub scopes: BTreeMap<String, Vec<Scope>>,
    /// The scopes of a token without the scope claim. Default: no scope.
    pub default_scopes: Vec<Scope>,
    /// The allowed difference between the issuer's clock and the gateway's clock. Default 30 s.
    pub leeway: Duration,
    /// The longest lifetime of a token, from `iat` to `exp`. Default 24 h, the longest default of common issuers. A
    /// stolen token works until its end, so the issuer alone must not decide the lifetime.
    pub max_token_lifetime: Duration,
    /// The URL of the issuer's keys. `None`: the discovery document gives the URL.
    pub jwks_url: Option<String>,
    /// The age at which the gateway fetches the issuer's keys anew. Default 10 min. While the issuer is away, the
    /// gateway keeps using the old keys.
    pub jwks_ttl: Duration,
    /// The shortest time between two fetches, whatever tokens come. Default 10 s.
    pub jwks_pause: Duration,
    /// The time limit of a fetch. Default 5 s.
    pub fetch_timeout: Duration,
    /// The most bytes of a fetch's answer. Default 256 KiB: some hundred keys.
    pub max_fetched_bytes: usize,
}

impl OidcConfig {
    /// Makes the settings of an issuer and an audience, with defaults for the rest.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            tenants: None,
            audience: audience.into(),
            algorithms: vec![Algorithm::RS256],
            tenant_claim: "tenant".to_owned(),
            scope_claim: "scope".to_owned(),
            scopes: Scope::OF_USERS
                .into_iter()
                .map(|scope| (scope.as_str().to_owned(), vec![scope]))
                .collect(),
            default_scopes: Vec::new(),
            leeway: Duration::from_secs(30),
            max_token_lifetime: Duration::from_hours(24),
            jwks_url: None,
            jwks_ttl: Duration::from_mins(10),
            jwks_pause: Duration::from_secs(10),
            fetch_timeout: Duration::from_secs(5),
            max_fetched_bytes: 256 * 1024,
        }
    }
}

/// Returns true for a URL that is safe from changes in transit: https, or http on this machine.
pub fn is_safe_to_fetch(url: &Url) -> bool {
    is_private(url.scheme(), url.host_str())
}
