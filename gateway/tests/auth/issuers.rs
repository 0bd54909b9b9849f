//! Several issuers: each speaks for its own tenants, with its own keys.

use everturn_gateway::{
    AuthConfig,
    config::{OidcConfig, Scope},
};
use serde_json::json;

use super::{
    SESSION, assert_unauthenticated, config, gateway,
    issuer::{Issuer, SigningKey},
};
use crate::support::TestGateway;

const ROUTE: (&str, &str) = ("GET", "/conversations");

/// A gateway that takes the tokens of two issuers, of `acme` and of `umbrella`.
async fn with_two() -> (TestGateway, [(Issuer, SigningKey); 2]) {
    let keys = [SigningKey::p256("same"), SigningKey::p256("same")];
    let [one, other] = keys;
    let issuers = [
        (Issuer::start(&[&one]).await, one),
        (Issuer::start(&[&other]).await, other),
    ];
    let of = |place: usize, tenant: &str| OidcConfig {
        tenants: Some(vec![tenant.to_owned()]),
        algorithms: vec![everturn_gateway::config::Algorithm::ES256],
        ..issuers[place].0.config()
    };
    let oidc = vec![of(0, "acme"), of(1, "umbrella")];
    let auth = AuthConfig { oidc, ..config() };
    (gateway(auth).await, issuers)
}

#[tokio::test]
async fn each_issuer_speaks_for_its_own_tenants() {
    let (gateway, [(one, one_key), (other, other_key)]) = with_two().await;
    let acme = one_key.sign(&one.claims_with(&json!({"tenant": "acme"})));
    let umbrella = other_key.sign(&other.claims_with(&json!({"tenant": "umbrella"})));
    for (token, tenant) in [(&acme, "acme"), (&umbrella, "umbrella")] {
        let who = gateway.bearer(("GET", SESSION), token).await;
        assert_eq!(who.json()["tenant"], tenant, "{}", who.text);
    }
    // An issuer signs for a tenant of the other one: in its own name, and in that of the other.
    let foreign = other_key.sign(&other.claims_with(&json!({"tenant": "acme"})));
    let answer = gateway.bearer(ROUTE, &foreign).await;
    assert_unauthenticated(&answer, "does not speak for");
    let forged = other_key.sign(&one.claims_with(&json!({"tenant": "acme"})));
    let answer = gateway.bearer(ROUTE, &forged).await;
    assert_unauthenticated(&answer, "signature is wrong");
}

#[tokio::test]
async fn of_an_issuer_that_nobody_knows_nothing_is_fetched() {
    let (gateway, [(one, key), (other, _)]) = with_two().await;
    let stranger = Issuer::start(&[&key]).await;
    for kid in ["same", "unknown"] {
        let token = key.named(kid).sign(&stranger.claims());
        let answer = gateway.bearer(ROUTE, &token).await;
        assert_unauthenticated(&answer, "issuer is not accepted");
    }
    for issuer in [&one, &other, &stranger] {
        assert_eq!(issuer.fetches(), 0);
    }
}

/// A word that an issuer uses for something else gives nobody the rights of an admin.
#[tokio::test]
async fn only_words_that_are_configured_make_an_admin() {
    let key = SigningKey::rsa("rsa");
    let issuer = Issuer::start(&[&key]).await;
    let token = key.sign(&issuer.claims_with(&json!({"scope": "read admin admin:all"})));
    let by_default = AuthConfig {
        oidc: vec![issuer.config()],
        ..config()
    };
    let admin = ("GET", "/api/v1/admin/audit");
    let answer = gateway(by_default).await.bearer(admin, &token).await;
    answer.assert_problem(403, "insufficient_scope");
    let mut oidc = issuer.config();
    oidc.scopes = [("admin".to_owned(), vec![Scope::Admin])].into();
    let on_purpose = AuthConfig {
        oidc: vec![oidc],
        ..config()
    };
    let answer = gateway(on_purpose).await.bearer(admin, &token).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Where no credential is asked for, nobody is an admin.
#[tokio::test]
async fn nobody_is_an_admin_without_a_credential() {
    let gateway = TestGateway::start().await;
    for path in ["audit", "keys", "tenants", "usage"] {
        let answer = gateway.get(&format!("/api/v1/admin/{path}")).await;
        answer.assert_problem(403, "insufficient_scope");
    }
}
