//! The tables `[auth]` and `[auth.oidc]`: who may call the gateway.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use everturn_gateway::config::{
    ALGORITHMS, Algorithm, AuthConfig, OidcConfig, Origin, Scope, Scopes, is_safe_to_fetch,
};
use serde::Deserialize;
use toml::Spanned;

use super::check::{Checker, HOUR, SECOND};

/// A revoked key must not work for long, and each key in use is read once in this time.
const KEY_CACHE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(5);
const SESSION_LIFETIME: RangeInclusive<Duration> =
    Duration::from_mins(1)..=Duration::from_hours(24 * 90);
/// Clocks that are further apart are broken.
const LEEWAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_mins(5);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Auth {
    required: bool,
    allowed_origins: Vec<Spanned<String>>,
    key_cache: Option<Spanned<String>>,
    session_lifetime: Option<Spanned<String>>,
    oidc: Option<Oidc>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Oidc {
    issuer: Spanned<String>,
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

impl Checker<'_> {
    pub(super) fn auth(&mut self, table: Auth) -> AuthConfig {
        let default = AuthConfig::default();
        AuthConfig {
            required: table.required,
            allowed_origins: table
                .allowed_origins
                .iter()
                .filter_map(|origin| self.origin(origin))
                .collect(),
            key_cache: self.duration(
                "key_cache",
                table.key_cache.as_ref(),
                default.key_cache,
                KEY_CACHE,
            ),
            session_lifetime: self.duration(
                "session_lifetime",
                table.session_lifetime.as_ref(),
                default.session_lifetime,
                SESSION_LIFETIME,
            ),
            oidc: table.oidc.map(|oidc| self.oidc(oidc)),
            ..default
        }
    }

    fn origin(&mut self, origin: &Spanned<String>) -> Option<Origin> {
        let read = Origin::parse(origin.get_ref());
        read.map_err(|error| {
            self.wrong(
                origin,
                &format!("\"{}\" is no origin; {error}", origin.get_ref()),
            )
        })
        .ok()
    }

    fn oidc(&mut self, table: Oidc) -> OidcConfig {
        self.fetched_url("issuer", &table.issuer);
        if table.audience.get_ref().trim().is_empty() {
            self.wrong(
                &table.audience,
                "`audience` must not be empty: else a token for any other service would do here",
            );
        }
        let default = OidcConfig::new(table.issuer.into_inner(), table.audience.into_inner());
        let algorithms = table
            .algorithms
            .map(|algorithms| self.algorithms(&algorithms));
        let scopes = table.scopes.map(|scopes| {
            scopes
                .into_iter()
                .map(|(word, scopes)| (word, self.scopes(&scopes)))
                .collect()
        });
        OidcConfig {
            algorithms: algorithms.unwrap_or(default.algorithms),
            tenant_claim: table.tenant_claim.unwrap_or(default.tenant_claim),
            scope_claim: table.scope_claim.unwrap_or(default.scope_claim),
            scopes: scopes.unwrap_or(default.scopes),
            default_scopes: self.scopes(&table.default_scopes),
            leeway: self.duration("leeway", table.leeway.as_ref(), default.leeway, LEEWAY),
            jwks_ttl: self.duration(
                "jwks_ttl",
                table.jwks_ttl.as_ref(),
                default.jwks_ttl,
                SECOND..=24 * HOUR,
            ),
            jwks_pause: self.duration(
                "jwks_pause",
                table.jwks_pause.as_ref(),
                default.jwks_pause,
                SECOND..=HOUR,
            ),
            jwks_url: table.jwks_url.map(|url| {
                self.fetched_url("jwks_url", &url);
                url.into_inner()
            }),
            ..default
        }
    }

    /// Whoever can change what is fetched can sign in as anyone.
    fn fetched_url(&mut self, key: &str, url: &Spanned<String>) {
        if !url
            .get_ref()
            .parse::<url::Url>()
            .is_ok_and(|url| is_safe_to_fetch(&url))
        {
            self.wrong(
                url,
                &format!("`{key}` must be an https URL, or http on this machine"),
            );
        }
    }

    fn algorithms(&mut self, names: &Spanned<Vec<Spanned<String>>>) -> Vec<Algorithm> {
        if names.get_ref().is_empty() {
            self.wrong(
                names,
                "`algorithms` must name at least one; leave it out for [\"RS256\"]",
            );
        }
        let known = ALGORITHMS.map(|(name, _)| name).join(", ");
        let mut algorithms = Vec::new();
        for name in names.get_ref() {
            match ALGORITHMS.iter().find(|(known, _)| known == name.get_ref()) {
                Some((_, algorithm)) => algorithms.push(*algorithm),
                None if name.get_ref().starts_with("HS") || name.get_ref().eq_ignore_ascii_case("none") => self.wrong(
                    name,
                    &format!(
                        "{} is refused: whoever can check such a token can make one. There are: {known}",
                        name.get_ref()
                    ),
                ),
                None => self.wrong(name, &format!("there is no algorithm `{}`; there are: {known}", name.get_ref())),
            }
        }
        algorithms
    }

    fn scopes(&mut self, words: &[Spanned<String>]) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for word in words {
            if let Some(scope) = Scope::of(word.get_ref()) {
                scopes.push(scope);
            } else {
                let message = format!(
                    "there is no scope `{}`; there are: {}",
                    word.get_ref(),
                    Scopes::all()
                );
                self.wrong(word, &message);
            }
        }
        scopes
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigError};

    fn parse(text: &str) -> Result<AuthConfig, ConfigError> {
        Config::parse(text, "everturn.toml", Some(&[]), &|_| None).map(|config| config.auth)
    }

    #[test]
    fn nothing_is_required_by_default() {
        let auth = parse("").unwrap();
        assert!(!auth.required && auth.allowed_origins.is_empty() && auth.oidc.is_none());
        assert_eq!(auth.key_cache, Duration::from_secs(5));
    }

    #[test]
    fn what_is_written_is_taken() {
        let auth = parse(
            "[auth]\nrequired = true\nallowed_origins = [\"https://app.example.com\"]\nkey_cache = \"1s\"\n\
             session_lifetime = \"1h\"\n[auth.oidc]\nissuer = \"https://login.example.com/\"\naudience = \"everturn\"\n\
             algorithms = [\"ES256\", \"EdDSA\"]\ntenant_claim = \"org\"\nscope_claim = \"permissions\"\n\
             scopes = { \"chat:all\" = [\"read\", \"write\"] }\ndefault_scopes = [\"read\"]\nleeway = \"0s\"\n",
        );
        let auth = auth.unwrap();
        assert!(auth.required);
        assert_eq!(
            auth.allowed_origins,
            [Origin::parse("https://app.example.com").unwrap()]
        );
        assert_eq!((auth.key_cache, auth.session_lifetime), (SECOND, HOUR));
        let oidc = auth.oidc.unwrap();
        assert_eq!(
            (oidc.issuer.as_str(), oidc.audience.as_str()),
            ("https://login.example.com/", "everturn")
        );
        assert_eq!(oidc.algorithms, [Algorithm::ES256, Algorithm::EdDSA]);
        assert_eq!(
            (oidc.tenant_claim.as_str(), oidc.scope_claim.as_str()),
            ("org", "permissions")
        );
        assert_eq!(
            oidc.scopes,
            [("chat:all".to_owned(), vec![Scope::Read, Scope::Write])].into()
        );
        assert_eq!(
            (oidc.default_scopes, oidc.leeway),
            (vec![Scope::Read], Duration::ZERO)
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let oidc = "[auth.oidc]\nissuer = \"https://a.example\"\naudience = \"x\"\n";
        for (text, expected) in [
            ("[auth]\nrequire = true\n", "2:1: unknown field `require`"),
            (
                "[auth]\nallowed_origins = [\"*\"]\n",
                "2:20: \"*\" is no origin; an origin is written as browsers send it",
            ),
            (
                "[auth]\nallowed_origins = [\"https://a.example/\"]\n",
                "2:20: \"https://a.example/\" is no origin",
            ),
            (
                "[auth]\nkey_cache = \"1h\"\n",
                "2:13: `key_cache` must be from 100ms to 5m",
            ),
            (
                "[auth.oidc]\nissuer = \"https://a.example\"\n",
                "missing field `audience`",
            ),
            (
                "[auth.oidc]\nissuer = \"http://a.example\"\naudience = \"x\"\n",
                "2:10: `issuer` must be an https URL",
            ),
            (
                "[auth.oidc]\nissuer = \"https://a.example\"\naudience = \"\"\n",
                "3:12: `audience` must not be empty",
            ),
            (
                &format!("{oidc}algorithms = []\n"),
                "4:14: `algorithms` must name at least one",
            ),
            (
                &format!("{oidc}algorithms = [\"RS256\", \"HS256\"]\n"),
                "4:24: HS256 is refused",
            ),
            (
                &format!("{oidc}algorithms = [\"none\"]\n"),
                "4:15: none is refused",
            ),
            (
                &format!("{oidc}algorithms = [\"RSA\"]\n"),
                "4:15: there is no algorithm `RSA`; there are: RS256",
            ),
            (
                &format!("{oidc}scopes = {{ a = [\"all\"] }}\n"),
                "4:17: there is no scope `all`; there are: read write",
            ),
            (
                &format!("{oidc}jwks_url = \"http://a.example/keys\"\n"),
                "4:12: `jwks_url` must be an https URL",
            ),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(
                message.contains(expected),
                "{text}\n→ {message}\nexpected {expected}"
            );
        }
    }
}
