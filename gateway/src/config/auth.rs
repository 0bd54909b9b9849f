//! How callers prove who they are, as configured. `worker/src/config/auth.rs` checks the values.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use everturn_proto::is_private;
pub use jsonwebtoken::Algorithm;
use reqwest::Url;

use super::{origin::Origin, scope::Scope};

/// Algorithms a token may be signed with: asymmetric ones only. With a shared secret (HS256 …) whoever can check a
/// token can also make one, and a public key would be taken for the secret.
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

/// Who may call, and how they prove it.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// Refuse whoever has no credential. Default false, for a gateway on loopback: callers without one are then the
    /// default tenant with every scope. A credential that is presented is always checked.
    pub required: bool,
    /// Where browsers reach this gateway. Its scheme decides how the cookie of a session is kept, and its origin which
    /// pages are the gateway's own. Default none: then only `Sec-Fetch-Site` tells which page is, but on this machine.
    pub public_origin: Option<Origin>,
    /// Names and addresses under which callers without a credential may ask, beside those of this machine and that of
    /// `public_origin`. A page of any site can have its own name lead here; the name that the browser asked for tells.
    /// Default none. `None`: any, because something in front of the gateway asks who is calling.
    pub allowed_hosts: Option<Vec<String>>,
    /// Origins whose pages may call this gateway. Default none: only pages of the gateway's own origin.
    pub allowed_origins: Vec<Origin>,
    /// How long a key that was read from the store is used from memory. A revoked key still works for that long, and
    /// each key in use costs one query in that time. Default 5 s.
    pub key_cache: Duration,
    /// The most keys and sessions in memory. Default 10 000, of some 300 bytes each.
    pub max_cached_keys: usize,
    /// The longest that a browser session lasts. Default 12 h: a working day.
    pub session_lifetime: Duration,
    /// The most open sessions of one key, or of one owner who signs in with tokens. One more ends the oldest. Default 1000.
    pub max_sessions: NonZeroU32,
    /// How long a key is valid that `everturn keys create` makes without `--expires`. Default `None`: until it is revoked.
    pub key_lifetime: Option<Duration>,
    /// How often an open stream checks whether its key was revoked. Default 10 s.
    pub stream_check: Duration,
    /// The identity providers whose tokens are taken; none by default. Each issuer is there once.
    pub oidc: Vec<OidcConfig>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        const MAX_SESSIONS: NonZeroU32 = NonZeroU32::new(1000).unwrap();
        Self {
            required: false,
            public_origin: None,
            allowed_hosts: Some(Vec::new()),
            allowed_origins: Vec::new(),
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

/// Whose tokens are taken, and what their claims mean.
#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// The issuer, exactly as `iss` of its tokens says it. Its discovery document names the keys.
    pub issuer: String,
    /// The tenants that its tokens may name. `None`: any. Issuers of one gateway have no tenant in common, because whoever
    /// signs for a tenant may also say who somebody is in it.
    pub tenants: Option<Vec<String>>,
    /// What must be in `aud`: this API's name at the issuer.
    pub audience: String,
    /// What a token may be signed with. Default RS256, which every issuer has.
    pub algorithms: Vec<Algorithm>,
    /// Claim with the tenant. Default `tenant`.
    pub tenant_claim: String,
    /// Claim with the scopes: words in one string, or a list. Default `scope`.
    pub scope_claim: String,
    /// What a word of that claim allows. Default: `read`, `write` and `approve` allow what they say. A word like `admin` may
    /// mean something else at an issuer, so it allows nothing unless it is configured.
    pub scopes: BTreeMap<String, Vec<Scope>>,
    /// What a token without that claim may do. Default nothing.
    pub default_scopes: Vec<Scope>,
    /// How far the issuer's clock may be from this one's. Default 30 s.
    pub leeway: Duration,
    /// Where the issuer's keys are; without it, where its discovery document says.
    pub jwks_url: Option<String>,
    /// How old the issuer's keys may become before they are fetched anew. Default 10 min. While the issuer is away the
    /// old ones stay in use.
    pub jwks_ttl: Duration,
    /// The shortest time between two fetches, whatever tokens come. Default 10 s.
    pub jwks_pause: Duration,
    /// How long a fetch may take. Default 5 s.
    pub fetch_timeout: Duration,
    /// The most bytes that a fetch may return. Default 256 KiB: some hundred keys.
    pub max_fetched_bytes: usize,
}

impl OidcConfig {
    /// Makes the settings of an issuer and an audience; everything else has its default.
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
            jwks_url: None,
            jwks_ttl: Duration::from_mins(10),
            jwks_pause: Duration::from_secs(10),
            fetch_timeout: Duration::from_secs(5),
            max_fetched_bytes: 256 * 1024,
        }
    }
}

/// True for a URL whose answer nobody on the way can change: https, or http on this machine.
pub fn is_safe_to_fetch(url: &Url) -> bool {
    is_private(url.scheme(), url.host_str())
}
