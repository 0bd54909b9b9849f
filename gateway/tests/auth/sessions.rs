//! Browser sessions: cookies, the pages that may use them, and their end.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use everturn_gateway::AuthConfig;
use everturn_store::{Access, Keys};
use serde_json::json;

use super::{
    PAGE, SESSION, acme, assert_unauthenticated, config, eventually, gateway, in_ms,
    issuer::{Issuer, SigningKey},
    key,
};
use crate::support::{Answer, Sse, TestGateway};

/// Opens a session, and returns the cookie as a browser sends it back.
pub(super) async fn open(gateway: &TestGateway, credential: &str) -> String {
    let opened = gateway.bearer(("POST", SESSION), credential).await;
    assert_eq!((opened.status.as_u16(), opened.text.as_str()), (204, ""));
    assert_eq!(opened.header("cache-control"), "no-store");
    let cookie = opened.header("set-cookie");
    assert!(
        cookie.contains("; Path=/;") && cookie.contains("; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

/// A request of a page with the cookie.
async fn from_page(
    gateway: &TestGateway,
    route: (&str, &str),
    cookie: &str,
    header: (&str, &str),
) -> Answer {
    let request = gateway
        .request(route.0, route.1)
        .header("cookie", cookie)
        .header(header.0, header.1);
    let request = if route.0 == "POST" {
        request.json(&json!({}))
    } else {
        request
    };
    Answer::of(request.send().await.unwrap()).await
}

const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
const LIST: (&str, &str) = ("GET", "/conversations");
const CREATE: (&str, &str) = ("POST", "/conversations");

#[tokio::test]
async fn a_session_does_what_its_key_does() {
    let gateway = gateway(config()).await;
    let end = in_ms(60_000);
    let key = key(&gateway, Access::owner("acme", "ann"), "read", Some(end)).await;
    let cookie = open(&gateway, &key.reveal()).await;
    assert!(
        cookie.starts_with("everturn=evs_"),
        "on loopback there is no https"
    );
    let who = gateway
        .with_header(("GET", SESSION), "cookie", &cookie)
        .await
        .json();
    let end = end.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let expected = json!({"credential": "session", "tenant": "acme", "owner": "ann", "scopes": ["read"], "expires_at": end});
    assert_eq!(who, expected, "and it ends no later");
    from_page(&gateway, CREATE, &cookie, OWN)
        .await
        .assert_problem(403, "insufficient_scope");
    assert_eq!(from_page(&gateway, LIST, &cookie, OWN).await.status, 200);
}

#[tokio::test]
async fn elsewhere_the_cookie_is_bound_to_its_host_and_to_https() {
    let gateway = gateway(config()).await;
    let key = acme(&gateway).await;
    let request = gateway
        .request("POST", SESSION)
        .bearer_auth(key.reveal())
        .header("host", "api.example.com");
    let opened = Answer::of(request.send().await.unwrap()).await;
    let cookie = opened.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-everturn=evs_") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let list = |cookie: String| {
        gateway
            .request("GET", "/conversations")
            .header("host", "api.example.com")
            .header("cookie", cookie)
    };
    assert_eq!(list(cookie.to_owned()).send().await.unwrap().status(), 200);
    let planted = cookie.replace("__Host-everturn", "everturn");
    assert_eq!(
        list(planted).send().await.unwrap().status(),
        401,
        "another host of the domain could have set it"
    );
}

#[tokio::test]
async fn only_trusted_pages_change_something_with_a_cookie() {
    let gateway = gateway(config()).await;
    let key = acme(&gateway).await;
    let cookie = open(&gateway, &key.reveal()).await;
    let own = format!("http://{}", gateway.address);
    for trusted in [OWN, ("origin", PAGE), ("origin", &own)] {
        assert_eq!(
            from_page(&gateway, CREATE, &cookie, trusted).await.status,
            201,
            "{trusted:?}"
        );
    }
    let not_trusted = [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "cross-site"),
        ("x-none", ""),
    ];
    for header in not_trusted {
        for route in [
            CREATE,
            ("POST", "/conversations/c/cancel"),
            ("POST", "/chat"),
            ("DELETE", SESSION),
            ("POST", SESSION),
        ] {
            from_page(&gateway, route, &cookie, header)
                .await
                .assert_problem(403, "origin_not_allowed");
        }
        // Reading changes nothing, and CORS keeps the answer from the page.
        assert_eq!(from_page(&gateway, LIST, &cookie, header).await.status, 200);
        // What no browser sends by itself needs no origin.
        let request = gateway
            .request("POST", "/conversations")
            .bearer_auth(key.reveal())
            .header(header.0, header.1);
        assert_eq!(request.json(&json!({})).send().await.unwrap().status(), 201);
    }
}

#[tokio::test]
async fn a_session_ends_when_asked_and_the_browser_forgets_it() {
    let gateway = gateway(config()).await;
    let key = acme(&gateway).await;
    let (ended, other) = (
        open(&gateway, &key.reveal()).await,
        open(&gateway, &key.reveal()).await,
    );
    let answer = from_page(&gateway, ("DELETE", SESSION), &ended, OWN).await;
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .header("set-cookie")
            .starts_with("everturn=; Path=/; Max-Age=0;")
    );
    let refused = from_page(&gateway, LIST, &ended, OWN).await;
    assert_unauthenticated(&refused, "ended");
    assert!(
        refused
            .header("set-cookie")
            .starts_with("everturn=; Path=/; Max-Age=0;"),
        "no page can remove it"
    );
    assert_eq!(from_page(&gateway, LIST, &other, OWN).await.status, 200);
    assert_eq!(
        gateway
            .bearer(("DELETE", SESSION), &key.reveal())
            .await
            .status,
        204,
        "a key has no session to end"
    );
    assert_eq!(gateway.bearer(LIST, &key.reveal()).await.status, 200);
}

#[tokio::test]
async fn revoking_a_key_ends_its_sessions_and_their_streams() {
    let gateway = gateway(config()).await;
    gateway.store.add("c", "acme");
    let key = acme(&gateway).await;
    let cookie = open(&gateway, &key.reveal()).await;
    let request = gateway
        .request("GET", "/conversations/c/events/stream")
        .header("cookie", &cookie);
    let mut stream = Sse::of(request.send().await.unwrap());
    assert_eq!(stream.names(1).await, ["replay"]);
    gateway.keys.revoke_key(key.id(), None).await.unwrap();
    assert_eq!(stream.names(1).await, ["end"]);
    assert!(stream.next().await.is_none());
    eventually("the session is refused", || async {
        from_page(&gateway, LIST, &cookie, OWN).await.status == 401
    })
    .await;
}

#[tokio::test]
async fn a_session_lasts_as_long_as_configured() {
    let gateway = gateway(AuthConfig {
        session_lifetime: std::time::Duration::from_secs(3),
        ..config()
    })
    .await;
    let key = acme(&gateway).await;
    let cookie = open(&gateway, &key.reveal()).await;
    let end = gateway
        .with_header(("GET", SESSION), "cookie", &cookie)
        .await
        .json()["expires_at"]
        .clone();
    eventually("the session is refused", || async {
        from_page(&gateway, LIST, &cookie, OWN).await.status == 401
    })
    .await;
    assert!(Utc::now() >= end.as_str().unwrap().parse::<DateTime<Utc>>().unwrap());
    let id = cookie.split('_').nth(1).unwrap();
    assert!(gateway.keys.find_key(id).await.unwrap().is_some());
    open(&gateway, &key.reveal()).await;
    assert_eq!(
        gateway.keys.find_key(id).await.unwrap(),
        None,
        "the next one tidies up"
    );
}

#[tokio::test]
async fn sessions_and_keys_are_not_taken_for_each_other() {
    let gateway = gateway(config()).await;
    let key = acme(&gateway).await;
    let cookie = open(&gateway, &key.reveal()).await;
    let session = cookie.split_once('=').unwrap().1;
    assert_unauthenticated(&gateway.bearer(LIST, session).await, "not a key");
    assert_unauthenticated(
        &gateway.bearer(LIST, &session.replace("evs", "evk")).await,
        "not known",
    );
    for value in [
        key.reveal(),
        key.reveal().replace("evk", "evs"),
        "x".to_owned(),
        String::new(),
    ] {
        let answer = from_page(&gateway, LIST, &format!("everturn={value}"), OWN).await;
        assert_unauthenticated(&answer, "session");
    }
    let answer = from_page(&gateway, ("POST", SESSION), &cookie, OWN).await;
    assert_unauthenticated(&answer, "opened with a key");
    // A key comes before a cookie, also before one that does not hold.
    let both = gateway
        .request("GET", "/conversations")
        .bearer_auth(key.reveal())
        .header("cookie", "everturn=x");
    assert_eq!(both.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_session_of_a_token_needs_no_issuer_and_ends_with_the_token() {
    let signing = SigningKey::p256("k");
    let issuer = Issuer::start(&[&signing]).await;
    let mut oidc = issuer.config();
    oidc.algorithms = vec![signing.algorithm];
    let gateway = gateway(AuthConfig {
        oidc: vec![oidc],
        ..config()
    })
    .await;
    let claims = issuer.claims();
    let cookie = open(&gateway, &signing.sign(&claims)).await;
    issuer.set(|answers| answers.is_away = true);
    let who = gateway
        .with_header(("GET", SESSION), "cookie", &cookie)
        .await
        .json();
    assert_eq!(
        (&who["tenant"], &who["owner"], &who["scopes"]),
        (&json!("acme"), &json!("ann"), &json!(["read", "write"]))
    );
    let end: DateTime<Utc> = who["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(end.timestamp(), claims["exp"].as_i64().unwrap() + 30);
}

#[tokio::test]
async fn without_a_credential_there_is_no_session() {
    let gateway = gateway(AuthConfig::default()).await;
    let answer = Answer::of(gateway.request("POST", SESSION).send().await.unwrap()).await;
    assert_unauthenticated(&answer, "opened with a key");
}

/// A key that leaked, or a page that signs in again and again, fills no table.
#[tokio::test]
async fn one_session_too_many_ends_the_oldest() {
    let gateway = gateway(AuthConfig {
        max_sessions: NonZeroU32::new(2).unwrap(),
        ..config()
    })
    .await;
    let (key, other) = (acme(&gateway).await.reveal(), acme(&gateway).await.reveal());
    let others = open(&gateway, &other).await;
    let mut cookies = Vec::new();
    for _ in 0..4 {
        cookies.push(open(&gateway, &key).await);
    }
    let mut open = Vec::new();
    for cookie in cookies.iter().chain([&others]) {
        open.push(from_page(&gateway, LIST, cookie, OWN).await.status == 200);
    }
    assert_eq!(open, [false, false, true, true, true]);
}
