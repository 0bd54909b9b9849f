//! The tables `[auth]` and `[auth.oidc]`: who may call the gateway.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU32,
    ops::RangeInclusive,
    time::Duration,
};

use everturn_gateway::config::{
    ALGORITHMS, Algorithm, AuthConfig, OidcConfig, Origin, Scope, Scopes, is_safe_to_fetch,
};
use everturn_proto::ids;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use toml::Spanned;

use super::checker::{Checker, HOUR, SECOND};

/// The time for which a checked API key is cached. A revoked key works until the end of that time, and a key in use is
/// read from the database once per period.
const KEY_CACHE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(5);
const SESSION_LIFETIME: RangeInclusive<Duration> =
    Duration::from_mins(1)..=Duration::from_hours(24 * 90);
const KEY_LIFETIME: RangeInclusive<Duration> =
    Duration::from_mins(1)..=Duration::from_hours(24 * 3650);
const MAX_SESSIONS: u32 = 1_000_000;
/// The accepted difference between two clocks. A clock with a larger error is broken.
const LEEWAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_mins(5);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuthTable {
    required: bool,
    public_url: Option<Spanned<String>>,
    allowed_hosts: Vec<Spanned<String>>,
    allowed_origins: Vec<Spanned<String>>,
    key_cache: Option<Spanned<String>>,
    session_lifetime: Option<Spanned<String>>,
    max_sessions: Option<Spanned<u32>>,
    key_lifetime: Option<Spanned<String>>,
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
    issuer: Spanned<String>,
    tenants: Option<Vec<Spanned<String>>>,
    audience: Spanned<String>,
    algorithms: Option<Spanned<Vec<Spanned<String>>>>,
    tenant_claim: Option<String>,
    scope_claim: Option<String>,
    scopes: Option<BTreeMap<String, Vec<Spanned<String>>>>,
    #[serde(default)]
    default_scopes: Vec<Spanned<String>>,
    leeway: Option<Spanned<String>>,
    jwks_url: Option<Spanned<String>>,
    jwks_ttl: Option<Spanned<String>>,
    jwks_pause: Option<Spanned<String>>,
}

impl AuthTable {
    pub(super) fn check(self, check: &mut Checker<'_>) -> AuthConfig {
        let default = AuthConfig::default();
        let sessions = default.max_sessions.get();
        let max_sessions = check.number(
            "max_sessions",
            &self.max_sessions,
            sessions,
            1..=MAX_SESSIONS,
        );
        AuthConfig {
            required: self.required,
            public_origin: self
                .public_url
                .and_then(|url| checked_public_url(check, &url)),
            allowed_hosts: Some(checked_hosts(check, &self.allowed_hosts)),
            allowed_origins: self
                .allowed_origins
                .iter()
                .filter_map(|origin| checked_origin(check, origin))
                .collect(),
            key_cache: check.duration("key_cache", &self.key_cache, default.key_cache, KEY_CACHE),
            session_lifetime: check.duration(
                "session_lifetime",
                &self.session_lifetime,
                default.session_lifetime,
                SESSION_LIFETIME,
            ),
            max_sessions: NonZeroU32::new(max_sessions).unwrap_or(default.max_sessions),
            key_lifetime: check.optional_duration("key_lifetime", &self.key_lifetime, KEY_LIFETIME),
            oidc: self.oidc.check(check),
            ..default
        }
    }
}

/// Returns the origin of the URL at which browsers reach the gateway.
fn checked_public_url(check: &mut Checker<'_>, url: &Spanned<String>) -> Option<Origin> {
    let parsed = url.get_ref().parse::<url::Url>().ok();
    let safe = parsed.filter(is_safe_to_fetch);
    let origin = safe.and_then(|url| Origin::parse(&url.origin().ascii_serialization()).ok());
    if origin.is_none() {
        check.wrong(
            url,
            "`public_url` must be an https URL, or http on this machine, like \"https://agents.example.com\"",
        );
    }
    origin
}

/// Returns the hosts as a URL has them, without a port.
fn checked_hosts(check: &mut Checker<'_>, hosts: &[Spanned<String>]) -> Vec<String> {
    for host in hosts {
        let url = format!("http://{}/", host.get_ref()).parse::<url::Url>();
        let is_host = url.is_ok_and(|url| {
            url.port().is_none()
                && url
                    .host_str()
                    .is_some_and(|found| found.eq_ignore_ascii_case(host.get_ref()))
        });
        if !is_host {
            check.wrong(
                host,
                format!("\"{}\" is no host; write a name or an address without a port, like \"gateway.internal\"", host.get_ref()),
            );
        }
    }
    hosts.iter().map(|host| host.get_ref().clone()).collect()
}

fn checked_origin(check: &mut Checker<'_>, origin: &Spanned<String>) -> Option<Origin> {
    let text = origin.get_ref();
    Origin::parse(text)
        .map_err(|error| check.wrong(origin, format!("\"{text}\" is no origin; {error}")))
        .ok()
}

impl Issuers {
    /// Checks the issuers. Two issuers must not sign for the same tenant, because each could then issue tokens for the
    /// other's users.
    fn check(self, check: &mut Checker<'_>) -> Vec<OidcConfig> {
        let is_one = self.0.len() <= 1;
        let (mut issuers, mut spoken_for) = (BTreeSet::new(), BTreeSet::new());
        for table in &self.0 {
            let issuer = &table.issuer;
            if !issuers.insert(issuer.get_ref().clone()) {
                check.named_twice(issuer, "issuer", issuer.get_ref());
            }
            if !is_one && table.tenants.is_none() {
                check.wrong(
                    issuer,
                    "with several issuers, each names the `tenants` of its tokens; otherwise an issuer could sign for tenants of another issuer",
                );
            }
            for tenant in table.tenants.iter().flatten() {
                if !ids::is_valid(tenant.get_ref()) {
                    check.wrong(tenant, format!("\"{}\" is no tenant", tenant.get_ref()));
                } else if !spoken_for.insert(tenant.get_ref().clone()) {
                    check.named_twice(tenant, "tenant", tenant.get_ref());
                }
            }
        }
        let several = self.0.into_iter();
        several.map(|one| one.check(check)).collect()
    }
}

impl OidcTable {
    fn check(self, check: &mut Checker<'_>) -> OidcConfig {
        check_fetched_url(check, "issuer", &self.issuer);
        if self.audience.get_ref().trim().is_empty() {
            check.wrong(
                &self.audience,
                "`audience` must not be empty: without an audience, the gateway would accept tokens for any service",
            );
        }
        let default = OidcConfig::new(self.issuer.into_inner(), self.audience.into_inner());
        let algorithms = self
            .algorithms
            .map(|algorithms| checked_algorithms(check, &algorithms));
        let scopes = self.scopes.map(|scopes| {
            scopes
                .into_iter()
                .map(|(word, scopes)| (word, checked_scopes(check, &scopes)))
                .collect()
        });
        if let Some(url) = &self.jwks_url {
            check_fetched_url(check, "jwks_url", url);
        }
        let tenants = self.tenants.map(|tenants| {
            let names = tenants.into_iter().map(Spanned::into_inner);
            names.collect()
        });
        OidcConfig {
            tenants,
            algorithms: algorithms.unwrap_or(default.algorithms),
            tenant_claim: self.tenant_claim.unwrap_or(default.tenant_claim),
            scope_claim: self.scope_claim.unwrap_or(default.scope_claim),
            scopes: scopes.unwrap_or(default.scopes),
            default_scopes: checked_scopes(check, &self.default_scopes),
            leeway: check.duration("leeway", &self.leeway, default.leeway, LEEWAY),
            jwks_ttl: check.duration(
                "jwks_ttl",
                &self.jwks_ttl,
                default.jwks_ttl,
                SECOND..=24 * HOUR,
            ),
            jwks_pause: check.duration(
                "jwks_pause",
                &self.jwks_pause,
                default.jwks_pause,
                SECOND..=HOUR,
            ),
            jwks_url: self.jwks_url.map(Spanned::into_inner),
            ..default
        }
    }
}

/// Checks a URL from which keys are fetched. An attacker who can change the fetched keys can sign in as any user.
fn check_fetched_url(check: &mut Checker<'_>, key: &str, url: &Spanned<String>) {
    let parsed = url.get_ref().parse::<url::Url>();
    if !parsed.is_ok_and(|url| is_safe_to_fetch(&url)) {
        check.wrong(
            url,
            format!("`{key}` must be an https URL, or http on this machine"),
        );
    }
}

fn checked_algorithms(
    check: &mut Checker<'_>,
    names: &Spanned<Vec<Spanned<String>>>,
) -> Vec<Algorithm> {
    if names.get_ref().is_empty() {
        check.wrong(
            names,
            "`algorithms` must name at least one algorithm; without `algorithms`, [\"RS256\"] applies",
        );
    }
    let mut algorithms = Vec::new();
    for at in names.get_ref() {
        let name = at.get_ref();
        if let Some((_, algorithm)) = ALGORITHMS.iter().find(|(known, _)| known == name) {
            algorithms.push(*algorithm);
        } else if name.starts_with("HS") || name.eq_ignore_ascii_case("none") {
            let known = ALGORITHMS.map(|(name, _)| name).join(", ");
            check.wrong(
                at,
                format!(
                    "{name} is refused: a service with the key to check tokens could also sign tokens. Known algorithms: {known}"
                ),
            );
        } else {
            let known = ALGORITHMS.iter().map(|(name, _)| *name);
            check.unknown(at, "algorithm", name, known);
        }
    }
    algorithms
}

fn checked_scopes(check: &mut Checker<'_>, words: &[Spanned<String>]) -> Vec<Scope> {
    let mut scopes = Vec::new();
    for word in words {
        match Scope::of(word.get_ref()) {
            Some(scope) => scopes.push(scope),
            None => check.wrong(
                word,
                format!(
                    "no scope has the name `{}`; the scopes are: {}",
                    word.get_ref(),
                    Scopes::all()
                ),
            ),
        }
    }
    scopes
}
