//! Tokens of an identity provider: signed JWTs, checked with the issuer's public keys.

use std::sync::Arc;

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
use crate::config::{OidcConfig, Scopes};

/// The most bytes of a token. Those that issuers make have one to four thousand.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Bytes of `sub`: OpenID Connect allows no more.
const MAX_SUBJECT_BYTES: usize = 255;

const MALFORMED: AuthRefusal = AuthRefusal::Invalid(
    "The credential is neither a key of this gateway nor a token that it can read.",
);

/// Checks tokens.
pub(super) struct Tokens {
    config: OidcConfig,
    keys: Arc<IssuerKeys>,
}

#[derive(Deserialize)]
struct Claims {
    /// It is read here so that a list of issuers is refused.
    #[serde(rename = "iss")]
    _issuer: String,
    sub: String,
    /// Seconds since 1970, possibly with a fraction.
    exp: f64,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Tokens {
    pub(super) fn new(config: OidcConfig) -> Self {
        let keys = Arc::new(IssuerKeys::new(config.clone()));
        Self { config, keys }
    }

    /// Returns whose token this is, when it is valid.
    pub(super) async fn verify(&self, token: &str) -> Result<Caller, AuthRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(MALFORMED);
        }
        // `alg: none` and algorithms that nobody knows end here.
        let header = decode_header(token).map_err(|_| MALFORMED)?;
        if !self.config.algorithms.contains(&header.alg) {
            return Err(AuthRefusal::Invalid(
                "The token is signed with an algorithm that is not accepted here.",
            ));
        }
        // The issuer demands an extension that this version does not know (RFC 7515, 4.1.11).
        if header.crit.is_some() {
            return Err(MALFORMED);
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let decoded = decode::<Claims>(token, &key, &self.validation(&header))
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
        let tenant = claims
            .others
            .get(&self.config.tenant_claim)
            .and_then(Value::as_str)
            .filter(|id| ids::is_valid(id));
        let tenant = tenant.ok_or(AuthRefusal::Invalid(
            "The token does not say which tenant it is for.",
        ))?;
        let is_subject = (1..=MAX_SUBJECT_BYTES).contains(&claims.sub.len())
            && !claims.sub.contains(char::is_control);
        if !is_subject {
            return Err(AuthRefusal::Invalid(
                "The token does not say who it is for.",
            ));
        }
        Ok(Caller {
            access: Access::owner(tenant, &claims.sub),
            scopes: self.scopes(claims.others.get(&self.config.scope_claim)),
            expires_at: Some(end(claims.exp, self.config.leeway)),
            credential: Credential::Token,
        })
    }

    /// What the words of the claim allow.
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

/// Tells from when on a token that expires at `exp` is refused: the leeway is added.
fn end(exp: f64, leeway: std::time::Duration) -> DateTime<Utc> {
    let since_1970 = std::time::Duration::try_from_secs_f64(exp)
        .ok()
        .and_then(|exp| exp.checked_add(leeway));
    let since_1970 = since_1970.and_then(|end| TimeDelta::from_std(end).ok());
    // A time that is too large for the calendar is never reached.
    since_1970
        .and_then(|end| DateTime::UNIX_EPOCH.checked_add_signed(end))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn refusal(kind: &ErrorKind) -> AuthRefusal {
    match kind {
        ErrorKind::ExpiredSignature => AuthRefusal::Invalid("The token has expired."),
        ErrorKind::ImmatureSignature => AuthRefusal::Invalid("The token is not valid yet."),
        ErrorKind::InvalidIssuer => {
            AuthRefusal::Invalid("The token is of an issuer that is not accepted here.")
        }
        ErrorKind::InvalidAudience => AuthRefusal::Invalid("The token is not meant for this API."),
        ErrorKind::InvalidSignature => AuthRefusal::Invalid("The token's signature is wrong."),
        ErrorKind::MissingRequiredClaim(_) => {
            AuthRefusal::Invalid("The token lacks one of the claims exp, iss, aud, sub.")
        }
        _ => MALFORMED,
    }
}
