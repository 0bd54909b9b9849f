//! The tables `[auth]` and `[auth.oidc]`: who may call the gateway.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU32,
};

use everturn_gateway::config::{
    ALGORITHMS, Algorithm, AuthConfig, OidcConfig, Origin, Scope, Scopes, is_safe_to_fetch,
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use toml::Spanned;
use url::Url;

use super::{
    checker::Checker,
    forms::{
        DAY, Form, HOUR, MINUTE, Number, OneOf, SECOND, Tenant, Text, Time, Words, Written,
        WrittenUrl,
    },
};

/// The time for which a checked API key is cached. A revoked key works until the end of that time, and a key in use is
/// read from the database once per period.
type KeyCache = Time<100, { 5 * MINUTE }>;
/// The accepted difference between two clocks. A clock with a larger error is broken.
type Leeway = Time<0, { 5 * MINUTE }>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuthTable {
    required: bool,
    public_url: Option<Written<PublicUrl>>,
    allowed_hosts: Vec<Written<Host>>,
    allowed_origins: Vec<Written<Origin>>,
    key_cache: Option<Written<KeyCache>>,
    session_lifetime: Option<Written<Time<MINUTE, { 90 * DAY }>>>,
    max_sessions: Option<Written<Number<1, 1_000_000, NonZeroU32>>>,
    key_lifetime: Option<Written<Time<MINUTE, { 3650 * DAY }>>>,
    oidc: Issuers,
}

/// `[auth.oidc]` of one issuer, or `[[auth.oidc]]` of several.
#[derive(Debug, Default)]
struct Issuers(Vec<OidcTable>);

impl<'de> Deserialize<'de> for Issuers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrSeveral)
    }
}

struct OneOrSeveral;

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Issuers;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table, or several tables as [[auth.oidc]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Issuers, A::Error> {
        let one = OidcTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Issuers(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Issuers, A::Error> {
        let mut several = Vec::new();
        while let Some(one) = sequence.next_element()? {
            several.push(one);
        }
        Ok(Issuers(several))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OidcTable {
    issuer: Written<SafeUrl>,
    tenants: Option<Vec<Written<Tenant>>>,
    /// Without an audience, the gateway would accept tokens for any service.
    audience: Written<Text>,
    algorithms: Option<Spanned<Vec<Written<Signature>>>>,
    tenant_claim: Option<String>,
    scope_claim: Option<String>,
    scopes: Option<BTreeMap<String, Vec<Written<Scope>>>>,
    #[serde(default)]
    default_scopes: Vec<Written<Scope>>,
    leeway: Option<Written<Leeway>>,
    max_token_lifetime: Option<Written<Time<MINUTE, { 365 * DAY }>>>,
    jwks_url: Option<Written<SafeUrl>>,
    jwks_ttl: Option<Written<Time<SECOND, DAY>>>,
    jwks_pause: Option<Written<Time<SECOND, HOUR>>>,
}

impl AuthTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> AuthConfig {
        let default = AuthConfig::default();
        AuthConfig {
            required: self.required,
            public_origin: check.value(&self.public_url),
            allowed_hosts: Some(check.values(&self.allowed_hosts)),
            allowed_origins: check.values(&self.allowed_origins),
            key_cache: check.value_or(&self.key_cache, default.key_cache),
            session_lifetime: check.value_or(&self.session_lifetime, default.session_lifetime),
            max_sessions: check.value_or(&self.max_sessions, default.max_sessions),
            key_lifetime: check.value(&self.key_lifetime),
            oidc: self.oidc.check(check),
            ..default
        }
    }
}

impl Issuers {
    /// Checks the issuers. Two issuers must not sign for the same tenant, because each could then issue tokens for the
    /// other's users.
    fn check(&self, check: &mut Checker<'_>) -> Vec<OidcConfig> {
        let is_one = self.0.len() <= 1;
        let (mut issuers, mut spoken_for) = (BTreeSet::new(), BTreeSet::new());
        for table in &self.0 {
            let at = &table.issuer.at;
            if let Ok(issuer) = &table.issuer.value
                && !issuers.insert(&issuer.text)
            {
                check.named_twice(at, "issuer", &issuer.text);
            }
            if !is_one && table.tenants.is_none() {
                check.wrong(
                    at,
                    "with several issuers, each names the `tenants` of its tokens; otherwise an issuer could sign for tenants of another issuer",
                );
            }
            for tenant in table.tenants.iter().flatten() {
                if let Ok(name) = &tenant.value
                    && !spoken_for.insert(name)
                {
                    check.named_twice(&tenant.at, "tenant", name);
                }
            }
        }
        self.0.iter().map(|one| one.check(check)).collect()
    }
}

impl OidcTable {
    fn check(&self, check: &mut Checker<'_>) -> OidcConfig {
        let issuer = check.value(&self.issuer).map(|url| url.text);
        let audience = check.value(&self.audience);
        // A configuration with a mistake is not used, so an empty issuer or audience is not used either.
        let default = OidcConfig::new(issuer.unwrap_or_default(), audience.unwrap_or_default());
        let algorithms = self.algorithms.as_ref().map(|algorithms| {
            if algorithms.get_ref().is_empty() {
                check.wrong(
                    algorithms,
                    "`algorithms` must name at least one algorithm; without `algorithms`, [\"RS256\"] applies",
                );
            }
            check.values(algorithms.get_ref())
        });
        let scopes = self.scopes.as_ref().map(|scopes| {
            let scopes = scopes.iter();
            scopes
                .map(|(word, scopes)| (word.clone(), check.values(scopes)))
                .collect()
        });
        let (tenant_claim, scope_claim) = (&self.tenant_claim, &self.scope_claim);
        OidcConfig {
            tenants: self.tenants.as_ref().map(|tenants| check.values(tenants)),
            algorithms: algorithms.unwrap_or(default.algorithms),
            tenant_claim: tenant_claim.clone().unwrap_or(default.tenant_claim),
            scope_claim: scope_claim.clone().unwrap_or(default.scope_claim),
            scopes: scopes.unwrap_or(default.scopes),
            default_scopes: check.values(&self.default_scopes),
            leeway: check.value_or(&self.leeway, default.leeway),
            max_token_lifetime: check
                .value_or(&self.max_token_lifetime, default.max_token_lifetime),
            jwks_ttl: check.value_or(&self.jwks_ttl, default.jwks_ttl),
            jwks_pause: check.value_or(&self.jwks_pause, default.jwks_pause),
            jwks_url: check.value(&self.jwks_url).map(|url| url.text),
            ..default
        }
    }
}

/// An algorithm that signs tokens with a key of the issuer alone.
struct Signature;

impl Form for Signature {
    type Toml = String;
    type Value = Algorithm;

    fn read(text: String) -> Result<Algorithm, String> {
        let is_open = text.starts_with("HS") || text.eq_ignore_ascii_case("none");
        OneOf::<Algorithm>::read(text).map_err(|error| {
            if is_open {
                format!(
                    "{error}. A service with the key to check such a token could also sign tokens"
                )
            } else {
                error
            }
        })
    }
}

/// A URL from which a gateway fetches keys, or at which browsers reach the gateway. An attacker who can change the
/// traffic to the URL can sign in as any user.
struct SafeUrl;

impl Form for SafeUrl {
    type Toml = String;
    type Value = WrittenUrl;

    fn read(text: String) -> Result<WrittenUrl, String> {
        WrittenUrl::read(text, is_safe_to_fetch).ok_or_else(|| {
            "must be an https URL, or http on this machine, like \"https://agents.example.com\""
                .to_owned()
        })
    }
}

/// The URL at which browsers reach the gateway. The value is the URL's origin.
struct PublicUrl;

impl Form for PublicUrl {
    type Toml = String;
    type Value = Origin;

    fn read(text: String) -> Result<Origin, String> {
        let origin = SafeUrl::read(text)?.url.origin().ascii_serialization();
        Origin::parse(&origin).map_err(|error| format!("cannot be used: {error}"))
    }
}

/// A host as a URL has it, without a port.
struct Host;

impl Form for Host {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        let url = format!("http://{text}/").parse::<Url>().ok();
        let url = url.filter(|url| url.port().is_none());
        let host = url.as_ref().and_then(Url::host_str);
        if host.is_some_and(|host| host.eq_ignore_ascii_case(&text)) {
            return Ok(text);
        }
        Err(format!(
            "has \"{text}\", but a host is a name or an address without a port, like \"gateway.internal\""
        ))
    }
}

impl Form for Origin {
    type Toml = String;
    type Value = Self;

    fn read(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|error| format!("has \"{text}\", but {error}"))
    }
}

impl Form for Scope {
    type Toml = String;
    type Value = Self;

    fn read(word: String) -> Result<Self, String> {
        Self::of(&word)
            .ok_or_else(|| format!("has \"{word}\", but the scopes are: {}", Scopes::all()))
    }
}

impl Words for Algorithm {
    const WORDS: &'static [(&'static str, Self)] = &ALGORITHMS;
}
