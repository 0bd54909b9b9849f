//! The issuer's public keys: fetched when needed, kept while the issuer is away.

use std::sync::{Arc, PoisonError, RwLock};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use reqwest::Url;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{sync::Mutex, time::Instant};

use super::refusal::AuthRefusal;
use crate::{
    config::{OidcConfig, is_safe_to_fetch},
    http::problem::{Code, Problem},
};

/// The most keys of an issuer; the rest is left out. Issuers publish two or three.
const MAX_KEYS: usize = 100;

/// The issuer's keys.
pub(super) struct IssuerKeys {
    config: OidcConfig,
    fetched: RwLock<Option<Fetched>>,
    /// When a fetch last began or ended. The lock is held during a fetch, and therefore only one fetch runs at a time.
    tried: Mutex<Option<Instant>>,
}

struct Fetched {
    keys: Vec<IssuerKey>,
    at: Instant,
}

/// A public key for the check of signatures.
struct IssuerKey {
    jwk: Jwk,
    key: DecodingKey,
}

/// The reason why the keys could not be fetched. For the log only.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("{url} answered {status}")]
    Status {
        url: Url,
        status: reqwest::StatusCode,
    },
    #[error("{url} answered with more than {limit} bytes")]
    TooLarge { url: Url, limit: usize },
    #[error("the answer of {url} cannot be read")]
    Unreadable { url: Url, source: serde_json::Error },
    #[error(
        "keys cannot be fetched from `{0}`: the URL must be https, or http on the local machine"
    )]
    Url(String),
    #[error("the discovery document belongs to another issuer: `{0}`")]
    OtherIssuer(String),
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

impl IssuerKeys {
    pub(super) fn new(config: OidcConfig) -> Self {
        Self {
            config,
            fetched: RwLock::new(None),
            tried: Mutex::new(None),
        }
    }

    /// Returns the key of a token. For an unknown key, fetches the issuer's keys, but not more often than configured.
    /// Old keys are fetched anew in the background and stay in use meanwhile.
    pub(super) async fn find(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, AuthRefusal> {
        if let Some((key, is_fresh)) = self.known(kid, algorithm) {
            if !is_fresh && self.may_fetch() {
                let (keys, kid) = (Arc::clone(self), kid.map(str::to_owned));
                tokio::spawn(async move { keys.refresh(kid.as_deref(), algorithm).await });
            }
            return Ok(key);
        }
        self.refresh(kid, algorithm).await;
        if let Some((key, _)) = self.known(kid, algorithm) {
            return Ok(key);
        }
        if self.read().is_none() {
            let detail =
                "The identity provider's keys cannot be read now. Repeat the request in a moment.";
            return Err(AuthRefusal::Unknown(
                Problem::new(Code::IssuerUnavailable, detail).retry_after_s(5),
            ));
        }
        Err(AuthRefusal::Invalid(
            "The token's issuer does not publish the key of the signature.",
        ))
    }

    /// Finds the key of a token, and tells whether the keys were fetched lately. If a token names no key, exactly one
    /// key must fit the token.
    fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<(DecodingKey, bool)> {
        let fetched = self.read();
        let fetched = fetched.as_ref()?;
        let is_meant =
            |key: &&IssuerKey| kid.is_none_or(|kid| key.jwk.common.key_id.as_deref() == Some(kid));
        let mut fitting = fetched
            .keys
            .iter()
            .filter(is_meant)
            .filter(|key| fits(&key.jwk, algorithm));
        let key = fitting.next()?;
        let is_clear = kid.is_some() || fitting.next().is_none();
        is_clear.then(|| (key.key.clone(), fetched.at.elapsed() < self.config.jwks_ttl))
    }

    fn may_fetch(&self) -> bool {
        self.tried
            .try_lock()
            .is_ok_and(|tried| self.is_pause_over(*tried))
    }

    fn is_pause_over(&self, tried: Option<Instant>) -> bool {
        tried.is_none_or(|at| at.elapsed() >= self.config.jwks_pause)
    }

    /// Fetches the keys, unless a fetch was tried lately. Waits for a running fetch, because the fetch may bring the
    /// key.
    async fn refresh(&self, kid: Option<&str>, algorithm: Algorithm) {
        let mut tried = self.tried.lock().await;
        let is_there = self
            .known(kid, algorithm)
            .is_some_and(|(_, is_fresh)| is_fresh);
        if is_there || !self.is_pause_over(*tried) {
            return;
        }
        *tried = Some(Instant::now());
        match fetch(&self.config).await {
            Ok(keys) => {
                let fetched = Fetched {
                    keys,
                    at: Instant::now(),
                };
                *self.fetched.write().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "the identity provider's keys cannot be fetched; the known keys stay in use"
                );
            }
        }
        *tried = Some(Instant::now());
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Option<Fetched>> {
        self.fetched.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true when the key has the algorithm's type and curve, and is meant for signatures. The check keeps a token
/// from choosing how its signature is read.
fn fits(jwk: &Jwk, algorithm: Algorithm) -> bool {
    let common = &jwk.common;
    let is_named = common
        .key_algorithm
        .is_none_or(|named| named == algorithm.into());
    let is_for_signatures = common
        .public_key_use
        .as_ref()
        .is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let may_verify = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let is_of_type = match (&jwk.algorithm, algorithm) {
        (
            AlgorithmParameters::RSA(_),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
        ) => true,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => {
            key.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => {
            key.curve == EllipticCurve::P384
        }
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => {
            key.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    is_named && is_for_signatures && may_verify && is_of_type
}

async fn fetch(config: &OidcConfig) -> Result<Vec<IssuerKey>, FetchError> {
    // The function makes a client per fetch, because fetches are minutes apart.
    let client = reqwest::Client::builder()
        // Redirects are not followed, because the gateway must ask only the configured host.
        .redirect(reqwest::redirect::Policy::none())
        .timeout(config.fetch_timeout)
        .build()?;
    let url = match &config.jwks_url {
        Some(url) => fetchable(url)?,
        None => discover(&client, config).await?,
    };
    let set: KeySet = get(&client, url, config.max_fetched_bytes).await?;
    Ok(usable(set))
}

/// Returns the usable keys of a set. Keys of an unknown kind are left out, and the rest is used.
fn usable(set: KeySet) -> Vec<IssuerKey> {
    let jwks = set
        .keys
        .into_iter()
        .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
    let keys = jwks.filter_map(|jwk| {
        Some(IssuerKey {
            key: DecodingKey::from_jwk(&jwk).ok()?,
            jwk,
        })
    });
    keys.take(MAX_KEYS).collect()
}

async fn discover(client: &reqwest::Client, config: &OidcConfig) -> Result<Url, FetchError> {
    let url = format!(
        "{}/.well-known/openid-configuration",
        config.issuer.trim_end_matches('/')
    );
    let found: Discovery = get(client, fetchable(&url)?, config.max_fetched_bytes).await?;
    if found.issuer != config.issuer {
        return Err(FetchError::OtherIssuer(found.issuer));
    }
    fetchable(&found.jwks_uri)
}

async fn get<T: DeserializeOwned>(
    client: &reqwest::Client,
    url: Url,
    limit: usize,
) -> Result<T, FetchError> {
    let mut response = client.get(url.clone()).send().await?;
    let status = response.status();
    if !status.is_success() {
        return Err(FetchError::Status { url, status });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Err(FetchError::TooLarge { url, limit });
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|source| FetchError::Unreadable { url, source })
}

fn fetchable(text: &str) -> Result<Url, FetchError> {
    let url = Url::parse(text).ok().filter(is_safe_to_fetch);
    url.ok_or_else(|| FetchError::Url(text.to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jsonwebtoken::{Header, Validation, decode};
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    /// Fields of a key, with fitting values and with random values.
    fn keys() -> impl Strategy<Value = Value> {
        const NAMES: [&str; 11] = [
            "kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y", "k",
        ];
        const WORDS: [&str; 14] = [
            "RSA", "EC", "OKP", "oct", "RS256", "ES256", "EdDSA", "HS256", "sig", "enc", "P-256",
            "Ed25519", "AQAB", "AAAA",
        ];
        let value = prop_oneof![
            4 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
            1 => "[A-Za-z0-9_=-]{0,44}".prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => Just(serde_json::json!(["verify", "sign"])),
        ];
        prop::collection::hash_map(prop::sample::select(&NAMES[..]), value, 0..11).prop_map(
            |fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            },
        )
    }

    proptest! {
        /// A key that an issuer publishes has one type, and no token is valid by a signature that nobody made.
        #[test]
        fn any_key_is_used_as_what_it_is_or_left_out(keys in prop::collection::vec(keys(), 0..4), signature in "[A-Za-z0-9_-]{0,90}") {
            let all = [Algorithm::RS256, Algorithm::PS512, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA];
            for key in usable(KeySet { keys }) {
                let fitting: Vec<_> = all.into_iter().filter(|algorithm| fits(&key.jwk, *algorithm)).collect();
                prop_assert!(fitting.len() <= 2 && !fits(&key.jwk, Algorithm::HS256), "{:?}", key.jwk);
                for algorithm in fitting {
                    let header = serde_json::to_string(&Header::new(algorithm)).unwrap();
                    let part = |text: &str| {
                        use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
                        URL_SAFE_NO_PAD.encode(text)
                    };
                    let token = format!("{}.{}.{signature}", part(&header), part("{\"exp\":99999999999}"));
                    let validation = Validation::new(algorithm);
                    prop_assert!(decode::<Value>(&token, &key.key, &validation).is_err());
                }
            }
        }
    }
}
