//! The issuer's keys: they are fetched only when needed, only from the issuer, and kept while the issuer is away.

use std::{sync::Arc, time::Duration};

use everturn_gateway::config::{Algorithm, AuthConfig, OidcConfig};

use super::{
    assert_unauthenticated, config, eventually, gateway,
    issuer::{Issuer, SigningKey},
};
use crate::support::TestGateway;

const ROUTE: (&str, &str) = ("GET", "/conversations");
const LONG: Duration = Duration::from_secs(3600);

async fn start(
    keys: &[&SigningKey],
    change: impl FnOnce(&mut OidcConfig),
) -> (TestGateway, Issuer) {
    let issuer = Issuer::start(keys).await;
    let mut oidc = OidcConfig {
        algorithms: vec![Algorithm::ES256],
        ..issuer.config()
    };
    change(&mut oidc);
    (
        gateway(AuthConfig {
            oidc: vec![oidc],
            ..config()
        })
        .await,
        issuer,
    )
}

#[tokio::test]
async fn keys_are_fetched_once_for_many() {
    let key = SigningKey::p256("k");
    let (gateway, issuer) = start(&[&key], |_| ()).await;
    let gateway = Arc::new(gateway);
    let token = key.sign(&issuer.claims());
    let requests = (0..20).map(|_| {
        let (gateway, token) = (gateway.clone(), token.clone());
        async move { gateway.bearer(ROUTE, &token).await.status }
    });
    for status in futures::future::join_all(requests).await {
        assert_eq!(status, 200);
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_new_key_is_found_at_once() {
    let (old, new) = (SigningKey::p256("old"), SigningKey::p256("new"));
    let (gateway, issuer) = start(&[&old], |oidc| oidc.jwks_ttl = LONG).await;
    assert_eq!(
        gateway
            .bearer(ROUTE, &old.sign(&issuer.claims()))
            .await
            .status,
        200
    );
    issuer.set(|answers| answers.keys = vec![new.public()]);
    let token = new.sign(&issuer.claims());
    eventually("the new key is known", || async {
        gateway.bearer(ROUTE, &token).await.status == 200
    })
    .await;
    assert_unauthenticated(
        &gateway.bearer(ROUTE, &old.sign(&issuer.claims())).await,
        "does not publish",
    );
}

#[tokio::test]
async fn made_up_keys_make_no_flood_of_fetches() {
    let key = SigningKey::p256("k");
    let (gateway, issuer) = start(&[&key], |oidc| oidc.jwks_pause = LONG).await;
    for number in 0..20 {
        let made_up = key.named(&format!("k{number}"));
        assert_unauthenticated(
            &gateway.bearer(ROUTE, &made_up.sign(&issuer.claims())).await,
            "does not publish",
        );
    }
    assert_eq!(issuer.fetches(), 1);
    assert_eq!(
        gateway
            .bearer(ROUTE, &key.sign(&issuer.claims()))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn old_keys_serve_while_the_issuer_is_away_and_new_ones_when_it_is_back() {
    let (old, new) = (SigningKey::p256("old"), SigningKey::p256("new"));
    let (gateway, issuer) = start(&[&old], |oidc| {
        oidc.jwks_ttl = Duration::from_millis(1);
        oidc.jwks_pause = Duration::from_millis(5);
    })
    .await;
    let token = old.sign(&issuer.claims());
    assert_eq!(gateway.bearer(ROUTE, &token).await.status, 200);
    issuer.set(|answers| answers.is_away = true);
    let tried = issuer.fetches();
    for _ in 0..20 {
        assert_eq!(gateway.bearer(ROUTE, &token).await.status, 200);
    }
    assert_eq!(
        issuer.fetches(),
        tried,
        "the discovery document is away, too"
    );
    issuer.set(|answers| {
        answers.is_away = false;
        answers.keys = vec![new.public()];
    });
    eventually("the old key is forgotten", || async {
        gateway.bearer(ROUTE, &token).await.status == 401
    })
    .await;
    assert_eq!(
        gateway
            .bearer(ROUTE, &new.sign(&issuer.claims()))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn without_any_keys_nothing_can_be_told() {
    let key = SigningKey::p256("k");
    let (gateway, issuer) = start(&[&key], |_| ()).await;
    issuer.set(|answers| answers.is_away = true);
    let token = key.sign(&issuer.claims());
    let answer = gateway.bearer(ROUTE, &token).await;
    answer.assert_problem(503, "issuer_unavailable");
    assert_eq!(answer.header("retry-after"), "5");
    issuer.set(|answers| answers.is_away = false);
    eventually("the keys are there", || async {
        gateway.bearer(ROUTE, &token).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn keys_come_from_the_configured_issuer_only() {
    let (key, forged) = (SigningKey::p256("k"), SigningKey::p256("k"));
    let elsewhere = Issuer::start(&[&forged]).await;

    let (gateway, issuer) = start(&[&key], |_| ()).await;
    issuer.set(|answers| answers.moved_to = Some(format!("{}/keys", elsewhere.url())));
    let token = forged.sign(&issuer.claims());
    gateway
        .bearer(ROUTE, &token)
        .await
        .assert_problem(503, "issuer_unavailable");
    assert_eq!(
        (issuer.fetches(), elsewhere.fetches()),
        (1, 0),
        "a redirect is not followed"
    );

    let (gateway, issuer) = start(&[&key], |_| ()).await;
    issuer.set(|answers| answers.is_impostor = true);
    let token = key.sign(&issuer.claims());
    gateway
        .bearer(ROUTE, &token)
        .await
        .assert_problem(503, "issuer_unavailable");
    assert_eq!(issuer.fetches(), 0);

    let (gateway, issuer) = start(&[&key], |oidc| oidc.max_fetched_bytes = 150).await;
    let token = key.sign(&issuer.claims());
    gateway
        .bearer(ROUTE, &token)
        .await
        .assert_problem(503, "issuer_unavailable");
    assert_eq!(issuer.fetches(), 1, "too much to read");
}
