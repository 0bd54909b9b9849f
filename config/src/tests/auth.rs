//! `[auth]` and `[auth.oidc]`.

use std::time::Duration;

use everturn_gateway::config::{Algorithm, AuthConfig, Origin, Scope};

use super::assert_errors;
use crate::ConfigError;

fn parse(text: &str) -> Result<AuthConfig, ConfigError> {
    super::parse(text, &[]).map(|config| config.gateway.auth)
}

#[test]
fn nothing_is_required_by_default() {
    let auth = parse("").unwrap();
    assert!(!auth.required && auth.allowed_origins.is_empty() && auth.oidc.is_empty());
    assert_eq!(auth.key_cache, Duration::from_secs(5));
}

#[test]
fn what_is_written_is_taken() {
    let auth = parse(
        "[auth]\nrequired = true\nallowed_origins = [\"https://app.example.com\"]\nkey_cache = \"1s\"\n\
         session_lifetime = \"1h\"\n[auth.oidc]\nissuer = \"https://login.example.com/\"\naudience = \"everturn\"\n\
         algorithms = [\"ES256\", \"EdDSA\"]\ntenant_claim = \"org\"\nscope_claim = \"permissions\"\n\
         scopes = { \"chat:all\" = [\"read\", \"write\"] }\ndefault_scopes = [\"read\"]\nleeway = \"0s\"\n\
         max_token_lifetime = \"1h\"\n",
    );
    let auth = auth.unwrap();
    assert!(auth.required);
    assert_eq!(
        auth.allowed_origins,
        [Origin::parse("https://app.example.com").unwrap()]
    );
    assert_eq!(
        (auth.key_cache, auth.session_lifetime),
        (Duration::from_secs(1), Duration::from_hours(1))
    );
    let [oidc] = auth.oidc.try_into().unwrap();
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
        (oidc.default_scopes, oidc.leeway, oidc.max_token_lifetime),
        (vec![Scope::Read], Duration::ZERO, Duration::from_hours(1))
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let oidc = "[auth.oidc]\nissuer = \"https://a.example\"\naudience = \"x\"\n";
    assert_errors(&[
        ("[auth]\nrequire = true\n", "2:1: unknown field `require`"),
        (
            "[auth]\nallowed_origins = [\"*\"]\n",
            "2:20: `allowed_origins` has \"*\", but an origin is written as browsers send it",
        ),
        (
            "[auth]\nallowed_origins = [\"https://a.example/\"]\n",
            "2:20: `allowed_origins` has \"https://a.example/\", but",
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
            "4:24: `algorithms` has \"HS256\", but the choices are: RS256",
        ),
        (
            &format!("{oidc}algorithms = [\"HS512\"]\n"),
            "A service with the key to check such a token could also sign tokens",
        ),
        (
            &format!("{oidc}algorithms = [\"none\"]\n"),
            "4:15: `algorithms` has \"none\", but",
        ),
        (
            &format!("{oidc}algorithms = [\"RSA\"]\n"),
            "4:15: `algorithms` has \"RSA\", but the choices are: RS256",
        ),
        (
            &format!("{oidc}scopes = {{ a = [\"all\"] }}\n"),
            "4:17: `a` has \"all\", but the scopes are: read write approve calls codec admin admin:all",
        ),
        (
            &format!("{oidc}jwks_url = \"http://a.example/keys\"\n"),
            "4:12: `jwks_url` must be an https URL",
        ),
    ]);
}

const SEVERAL: &str = "[[auth.oidc]]\nissuer = \"https://a.example\"\naudience = \"x\"\ntenants = [\"acme\", \"a\"]\n\
     [[auth.oidc]]\nissuer = \"https://b.example\"\naudience = \"y\"\n";

#[test]
fn several_issuers_speak_for_tenants_of_their_own() {
    let auth = parse(&format!("{SEVERAL}tenants = [\"umbrella\"]\n")).unwrap();
    let [one, other] = auth.oidc.try_into().unwrap();
    assert_eq!(
        (one.issuer.as_str(), other.audience.as_str()),
        ("https://a.example", "y")
    );
    assert_eq!(one.tenants, Some(vec!["acme".to_owned(), "a".to_owned()]));
    assert_eq!(other.tenants, Some(vec!["umbrella".to_owned()]));
    assert_errors(&[
        (
            SEVERAL,
            "6:10: with several issuers, each names the `tenants`",
        ),
        (
            &format!("{SEVERAL}tenants = [\"acme\"]\n"),
            "8:12: tenant `acme` is named twice",
        ),
        (
            &format!("{SEVERAL}tenants = [\"*\"]\n"),
            "8:12: `tenants` has \"*\", but a tenant must have 1 to 100 letters",
        ),
        (
            &format!(
                "{}tenants = [\"b\"]\n",
                SEVERAL.replace("b.example", "a.example")
            ),
            "6:10: issuer `https://a.example` is named twice",
        ),
    ]);
}

#[test]
fn a_word_of_an_issuer_makes_nobody_an_admin() {
    let auth = parse("[auth.oidc]\nissuer = \"https://a.example\"\naudience = \"x\"\n").unwrap();
    let words: Vec<_> = auth.oidc[0].scopes.keys().collect();
    assert_eq!(words, ["approve", "read", "write"]);
}
