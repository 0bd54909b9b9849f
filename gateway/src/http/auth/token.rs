//! Tokens of an identity provider: signed JWTs, checked with the issuer's public keys.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::ids;
use everturn_store::Access;
use jsonwebtoken::{Header, Validation, decode, decode_header, errors::ErrorKind};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    caller::{Caller, Credential},
    jwks::IssuerKeys,
    refusal::AuthRefusal,
};
use crate::{
    config::{OidcConfig, Scopes},
    http::audit::Source,
};

/// The most bytes of a token. Tokens of common issuers have one to four thousand bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The most bytes of `sub`, a limit of OpenID Connect.
const MAX_SUBJECT_BYTES: usize = 255;

const MALFORMED: AuthRefusal =
    AuthRefusal::Invalid("The credential is neither a key of the gateway nor a readable token.");

/// Checks tokens of every configured issuer.
pub(super) struct Tokens {
    issuers: Vec<Issuer>,
}

/// An issuer, with its own keys.
struct Issuer {
    config: OidcConfig,
    keys: Arc<IssuerKeys>,
}

/// The issuer in a token before the signature is checked. The claim only selects the issuer's keys and is not trusted.
#[derive(Deserialize)]
struct Unchecked {
    iss: String,
}

#[derive(Deserialize)]
struct Claims {
    /// The field is read only to refuse a list of issuers.
    #[serde(rename = "iss")]
    _issuer: String,
    sub: String,
    /// Seconds since 1970, possibly with a fraction.
    exp: f64,
    /// When the issuer made the token, like `exp`.
    iat: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Tokens {
    /// Returns `None` when no issuer is configured.
    pub(super) fn new(configs: &[OidcConfig]) -> Option<Self> {
        let issuers: Vec<_> = configs.iter().cloned().map(Issuer::new).collect();
        (!issuers.is_empty()).then_some(Self { issuers })
    }

    /// Returns the caller of a valid token. The function checks a token only with the keys of the issuer that the token
    /// names. For an unknown issuer, nothing is fetched.
    pub(super) async fn verify(&self, token: &str) -> Result<Caller, AuthRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(MALFORMED);
        }
        // `alg: none` and unknown algorithms end here.
        let header = decode_header(token).map_err(|_| MALFORMED)?;
        let named = named_issuer(token).ok_or(MALFORMED)?;
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| issuer.config.issuer == named);
        let issuer = issuer.ok_or_else(|| refusal(&ErrorKind::InvalidIssuer))?;
        issuer.verify(token, &header).await
    }
}

/// Returns the issuer in a token's payload, before the signature is checked.
fn named_issuer(token: &str) -> Option<String> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Unchecked = serde_json::from_slice(&payload).ok()?;
    Some(claims.iss)
}

impl Issuer {
    fn new(config: OidcConfig) -> Self {
        let keys = Arc::new(IssuerKeys::new(config.clone()));
        Self { config, keys }
    }

    async fn verify(&self, token: &str, header: &Header) -> Result<Caller, AuthRefusal> {
        if !self.config.algorithms.contains(&header.alg) {
            return Err(AuthRefusal::Invalid(
                "The gateway does not accept the algorithm of the token's signature.",
            ));
        }
        // The issuer demands an extension unknown to this version (RFC 7515, 4.1.11).
        if header.crit.is_some() {
            return Err(MALFORMED);
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let decoded = decode::<Claims>(token, &key, &self.validation(header))
            .map_err(|error| refusal(error.kind()))?;
        self.caller(&decoded.claims)
    }

    fn validation(&self, header: &Header) -> Validation {
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.config.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&[&self.config.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    fn caller(&self, claims: &Claims) -> Result<Caller, AuthRefusal> {
        if self.lives_too_long(claims) {
            return Err(AuthRefusal::Invalid(
                "The token's lifetime is longer than max_token_lifetime of the gateway.",
            ));
        }
        let tenant = claims
            .others
            .get(&self.config.tenant_claim)
            .and_then(Value::as_str)
            .filter(|id| ids::is_valid(id));
        let tenant = tenant.ok_or(AuthRefusal::Invalid(
            "The token does not name a valid tenant.",
        ))?;
        let tenants = self.config.tenants.as_ref();
        if tenants.is_some_and(|tenants| !tenants.iter().any(|known| known == tenant)) {
            return Err(AuthRefusal::Invalid(
                "The token's issuer does not speak for the token's tenant.",
            ));
        }
        let is_subject = (1..=MAX_SUBJECT_BYTES).contains(&claims.sub.len())
            && !claims.sub.contains(char::is_control);
        if !is_subject {
            return Err(AuthRefusal::Invalid(
                "The token's claim sub is empty, too long or has control characters.",
            ));
        }
        Ok(Caller {
            access: Access::owner(tenant, &claims.sub),
            scopes: self.scopes(claims.others.get(&self.config.scope_claim)),
            expires_at: Some(end(claims.exp, self.config.leeway)),
            signed_in_at: Some(self.issued_at(claims)),
            credential: Credential::Token,
            principal: Some(claims.sub.clone()),
            key_id: None,
            source: Source::default(),
        })
    }

    /// Returns true for a token with a longer lifetime than allowed. The lifetime begins with `iat`, or now for a token
    /// without `iat` or with an `iat` in the future.
    fn lives_too_long(&self, claims: &Claims) -> bool {
        let now = (Utc::now() - DateTime::UNIX_EPOCH).as_seconds_f64();
        let begun = claims.iat.map_or(now, |iat| iat.min(now));
        let allowed = self.config.max_token_lifetime + self.config.leeway;
        claims.exp - begun > allowed.as_secs_f64()
    }

    /// Returns when the issuer made the token: `iat`, or the earliest possible time for a token without `iat`.
    fn issued_at(&self, claims: &Claims) -> DateTime<Utc> {
        let earliest = || claims.exp - self.config.max_token_lifetime.as_secs_f64();
        let issued_at = claims.iat.unwrap_or_else(earliest).max(0.0);
        end(issued_at, std::time::Duration::ZERO)
    }

    /// Returns the scopes that the words of the claim grant.
    fn scopes(&self, claim: Option<&Value>) -> Scopes {
        let words: Vec<&str> = match claim {
            None => return self.config.default_scopes.iter().copied().collect(),
            Some(Value::String(words)) => words.split_whitespace().collect(),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            Some(_) => Vec::new(),
        };
        words
            .into_iter()
            .filter_map(|word| self.config.scopes.get(word))
            .flatten()
            .copied()
            .collect()
    }
}

/// Returns the time `exp` plus the leeway, when a token with `exp` is refused.
fn end(exp: f64, leeway: std::time::Duration) -> DateTime<Utc> {
    let since_1970 = std::time::Duration::try_from_secs_f64(exp)
        .ok()
        .and_then(|exp| exp.checked_add(leeway));
    let since_1970 = since_1970.and_then(|end| TimeDelta::from_std(end).ok());
    // A time too large for the calendar is never reached.
    since_1970
        .and_then(|end| DateTime::UNIX_EPOCH.checked_add_signed(end))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn refusal(kind: &ErrorKind) -> AuthRefusal {
    match kind {
        ErrorKind::ExpiredSignature => AuthRefusal::Invalid("The token has expired."),
        ErrorKind::ImmatureSignature => AuthRefusal::Invalid("The token is not valid yet."),
        ErrorKind::InvalidIssuer => AuthRefusal::Invalid("The token's issuer is not accepted."),
        ErrorKind::InvalidAudience => AuthRefusal::Invalid("The token is for another audience."),
        ErrorKind::InvalidSignature => AuthRefusal::Invalid("The token's signature is wrong."),
        ErrorKind::MissingRequiredClaim(_) => {
            AuthRefusal::Invalid("The token lacks a claim: exp, iss, aud and sub are needed.")
        }
        _ => MALFORMED,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn tokens() -> Tokens {
        Tokens::new(&[OidcConfig::new("https://login.example.com/", "api")]).unwrap()
    }

    /// The values that a claim may have.
    fn claims() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z]{1,9}( [a-z:]{1,9}){0,3}".prop_map(Value::from),
            prop::collection::vec(any::<String>(), 0..3).prop_map(Value::from),
            Just(serde_json::json!(["read", 1, null, "write"])),
        ]
    }

    proptest! {
        /// No key is asked for, and nothing is fetched, for what is no token of an accepted algorithm.
        #[test]
        fn any_text_is_refused_without_asking_the_issuer(
            text in "\\PC{0,80}", header in "\\{[ -~]{0,40}\\}", algorithm in "none|HS256|HS512|ES256|EdDSA|[A-Za-z0-9]{0,6}", rest in "[A-Za-z0-9_.-]{0,60}",
        ) {
            let named = format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#);
            let [header, named] = [header, named].map(|header| format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header)));
            for token in [text, header, named, "a".repeat(MAX_TOKEN_BYTES + 1)] {
                if token.contains("RS256") { continue }
                let answered = tokens().verify(&token).now_or_never();
                prop_assert!(matches!(answered, Some(Err(AuthRefusal::Invalid(_)))), "{}", token);
            }
        }

        #[test]
        fn any_claims_are_a_caller_of_a_tenant_or_are_refused(
            subject in any::<String>(), tenant in claims(), scope in claims(), exp in any::<f64>(),
            iat in any::<Option<f64>>(),
        ) {
            let others = [("tenant".to_owned(), tenant), ("scope".to_owned(), scope)].into_iter().collect();
            let claims = Claims { _issuer: String::new(), sub: subject.clone(), exp, iat, others };
            if let Ok(caller) = tokens().issuers[0].caller(&claims) {
                prop_assert!(ids::is_valid(&caller.access.tenant_id));
                prop_assert_eq!(caller.access.owner_id, Some(subject));
                prop_assert!(caller.expires_at.is_some());
            }
        }
    }
}
