//! An identity provider over real HTTP: discovery, public keys, and tokens signed with the private ones.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use everturn_gateway::config::{Algorithm, OidcConfig};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp, jwk::Jwk};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub const AUDIENCE: &str = "everturn";

/// An RSA key that signs nothing but these tests' tokens (PKCS #1). Making one takes seconds.
pub const RSA: &[u8] = include_bytes!("rsa.der");

/// What comes before the 32 bytes of a P-256 key in PKCS #8.
const P256_PREFIX: [u8; 35] = [
    0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01,
    0x01, 0x04, 0x20,
];
/// What comes before the 32 bytes of an Ed25519 key in PKCS #8.
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    pub kid: String,
    pub algorithm: Algorithm,
    key: EncodingKey,
}

impl SigningKey {
    pub fn rsa(kid: &str) -> Self {
        Self {
            kid: kid.to_owned(),
            algorithm: Algorithm::RS256,
            key: EncodingKey::from_rsa_der(RSA),
        }
    }

    pub fn p256(kid: &str) -> Self {
        let key = EncodingKey::from_ec_der(&random_key(&P256_PREFIX));
        Self {
            kid: kid.to_owned(),
            algorithm: Algorithm::ES256,
            key,
        }
    }

    pub fn ed25519(kid: &str) -> Self {
        let key = EncodingKey::from_ed_der(&random_key(&ED25519_PREFIX));
        Self {
            kid: kid.to_owned(),
            algorithm: Algorithm::EdDSA,
            key,
        }
    }

    /// Makes the same key with another name.
    pub fn named(&self, kid: &str) -> Self {
        Self {
            kid: kid.to_owned(),
            ..self.clone()
        }
    }

    /// The public key as issuers publish it.
    pub fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.kid.clone());
        serde_json::to_value(jwk).unwrap()
    }

    pub fn sign(&self, claims: &Value) -> String {
        let header = Header {
            kid: Some(self.kid.clone()),
            ..Header::new(self.algorithm)
        };
        self.sign_with(&header, claims)
    }

    pub fn sign_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).unwrap()
    }
}

fn random_key(prefix: &[u8]) -> Vec<u8> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).unwrap();
    [prefix, &key].concat()
}

/// What the issuer answers, and what it was asked.
#[derive(Default)]
pub struct Answers {
    pub keys: Vec<Value>,
    /// Answers 503 to everything.
    pub is_away: bool,
    /// Redirects requests for keys to this URL.
    pub moved_to: Option<String>,
    /// Names another issuer in the discovery document.
    pub is_impostor: bool,
    /// How often the keys were asked for.
    pub fetches: usize,
}

/// An identity provider on a port of its own.
pub struct Issuer {
    pub address: SocketAddr,
    answers: Shared,
}

type Shared = Arc<Mutex<Answers>>;

impl Issuer {
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let answers: Shared = Arc::default();
        answers.lock().unwrap().keys = keys.iter().map(|key| key.public()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(published))
            .with_state(answers.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, answers }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the configuration of a gateway that takes its tokens.
    pub fn config(&self) -> OidcConfig {
        OidcConfig {
            jwks_pause: std::time::Duration::from_millis(50),
            ..OidcConfig::new(self.url(), AUDIENCE)
        }
    }

    pub fn set(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.answers.lock().unwrap());
    }

    pub fn fetches(&self) -> usize {
        self.answers.lock().unwrap().fetches
    }

    /// Makes claims that are valid.
    pub fn claims(&self) -> Value {
        let now = get_current_timestamp();
        json!({"iss": self.url(), "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "scope": "openid read write",
               "iat": now, "exp": now + 600})
    }

    /// Makes valid claims, with these in place of some; null removes one.
    pub fn claims_with(&self, others: &Value) -> Value {
        let mut claims = self.claims();
        for (name, value) in others.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }
}

async fn discovery(State(answers): State<Shared>, headers: HeaderMap) -> Response {
    let answers = answers.lock().unwrap();
    if answers.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let url = format!("http://{}", headers[header::HOST].to_str().unwrap());
    let issuer = if answers.is_impostor {
        "https://other.example"
    } else {
        &url
    };
    Json(json!({"issuer": issuer, "jwks_uri": format!("{url}/keys")})).into_response()
}

async fn published(State(answers): State<Shared>) -> Response {
    let mut answers = answers.lock().unwrap();
    answers.fetches += 1;
    match &answers.moved_to {
        _ if answers.is_away => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(url) => (StatusCode::FOUND, [(header::LOCATION, url.clone())]).into_response(),
        None => Json(json!({"keys": answers.keys})).into_response(),
    }
}
