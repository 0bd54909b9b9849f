//! Who may do what: keys, tokens, browser sessions and origins, over real HTTP.

mod agent_owners;
mod approvers;
mod audited;
mod codec;
mod failures;
mod issuer;
mod issuers;
mod keys;
mod makers;
mod origins;
mod owners;
mod rotation;
mod sessions;
mod tokens;
mod usage;

use std::{future::Future, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_gateway::{AuthConfig, GatewayConfig, auth::Secret, config::Origin};
use everturn_store::{Access, KeyKind, KeyMaker, Keys, NewKey};
use serde_json::json;

use crate::support::{Answer, TestGateway};

/// Some of the API's routes. The test that is made from the OpenAPI document, `tests/tests/e2e/both/isolation.rs`, tries
/// all.
const ROUTES: [(&str, &str); 13] = [
    ("POST", "/conversations"),
    ("GET", "/conversations"),
    ("GET", "/conversations/c"),
    ("POST", "/conversations/c/messages"),
    ("GET", "/conversations/c/messages"),
    ("GET", "/conversations/c/events"),
    ("GET", "/conversations/c/events/stream"),
    ("GET", "/conversations/c/execution-status"),
    ("POST", "/conversations/c/cancel"),
    ("GET", "/conversations/c/approvals"),
    ("GET", "/conversations/c/client-tools"),
    ("POST", "/chat"),
    ("GET", SESSION),
];

const SESSION: &str = "/api/v1/auth/session";
const PAGE: &str = "https://app.example.com";

/// How quickly a test's gateway notices what a real one notices in seconds.
const SOON: Duration = Duration::from_millis(30);

fn config() -> AuthConfig {
    AuthConfig {
        required: true,
        allowed_origins: vec![Origin::parse(PAGE).unwrap()],
        key_cache: SOON,
        stream_check: SOON,
        ..AuthConfig::default()
    }
}

async fn gateway(auth: AuthConfig) -> TestGateway {
    TestGateway::with(GatewayConfig {
        poll_interval: Duration::from_millis(50),
        auth,
        ..GatewayConfig::default()
    })
    .await
}

/// A key of the gateway's store, as `everturn keys create` makes one.
pub(super) async fn key(
    gateway: &TestGateway,
    access: Access,
    scopes: &str,
    expires_at: Option<DateTime<Utc>>,
) -> Secret {
    let secret = Secret::generate(KeyKind::Key).unwrap();
    let new = NewKey {
        id: secret.id().to_owned(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: secret.hash(),
        access,
        scopes: scopes.to_owned(),
        name: String::new(),
        made_by: KeyMaker::default(),
        expires_at,
        signed_in_at: None,
    };
    gateway.keys.create_key(new, None).await.unwrap();
    secret
}

/// A key of the tenant `acme` that may do everything.
async fn acme(gateway: &TestGateway) -> Secret {
    key(gateway, Access::tenant("acme"), "read write", None).await
}

fn in_ms(milliseconds: i64) -> DateTime<Utc> {
    Utc::now() + TimeDelta::milliseconds(milliseconds)
}

impl TestGateway {
    /// A request with this header, and a body that suits every route.
    async fn with_header(&self, route: (&str, &str), header: &str, value: &str) -> Answer {
        let request = self.request(route.0, route.1).header(header, value);
        let body = json!({"content": "hi", "message": "hi", "conversation_id": "c"});
        let request = if route.0 == "POST" {
            request.json(&body)
        } else {
            request
        };
        Answer::of(request.send().await.unwrap()).await
    }

    async fn bearer(&self, route: (&str, &str), credential: &str) -> Answer {
        self.with_header(route, "authorization", &format!("Bearer {credential}"))
            .await
    }
}

/// Asserts a 401 that says why, to people and to programs.
fn assert_unauthenticated(answer: &Answer, why: &str) {
    answer.assert_problem(401, "unauthenticated");
    assert!(
        answer.json()["detail"].as_str().unwrap().contains(why),
        "{}",
        answer.text
    );
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.starts_with("Bearer error=\"invalid_token\"") && challenge.contains(why),
        "{challenge}"
    );
}

/// Waits until the condition is true.
async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_mins(2), waiting)
            .await
            .is_ok(),
        "not so after 20 s: {what}"
    );
}
