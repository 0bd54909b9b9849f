//! API keys: what they allow, and when they are refused.

use chrono::{TimeDelta, Utc};
use everturn_gateway::AuthConfig;
use everturn_store::{Access, Keys};
use serde_json::json;

use super::{
    ROUTES, SESSION, acme, assert_unauthenticated, config, eventually, gateway, in_ms, key,
};
use crate::support::{Answer, Sse};

#[tokio::test]
async fn without_a_credential_only_health_is_open() {
    let gateway = gateway(config()).await;
    for (method, path) in ROUTES {
        let answer = Answer::of(gateway.request(method, path).send().await.unwrap()).await;
        answer.assert_problem(401, "unauthenticated");
        assert_eq!(
            answer.header("www-authenticate"),
            "Bearer",
            "{method} {path}"
        );
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(gateway.get(path).await.status, 200);
    }
}

#[tokio::test]
async fn where_nothing_is_required_what_is_presented_must_hold_all_the_same() {
    let gateway = gateway(AuthConfig::default()).await;
    let who = gateway.get(SESSION).await.json();
    let expected = json!({"credential": "none", "tenant": "default", "owner": null,
                          "scopes": ["read", "write", "approve"], "expires_at": null});
    assert_eq!(who, expected);
    assert_unauthenticated(
        &gateway.bearer(("GET", "/conversations"), "wrong").await,
        "not a key",
    );
    let key = acme(&gateway).await;
    assert_eq!(
        gateway.bearer(("GET", SESSION), &key.reveal()).await.json()["tenant"],
        "acme"
    );
}

#[tokio::test]
async fn a_key_says_who_one_is() {
    let gateway = gateway(config()).await;
    let end = in_ms(60_000);
    let key = key(&gateway, Access::owner("acme", "ann"), "read", Some(end)).await;
    let who = gateway.bearer(("GET", SESSION), &key.reveal()).await;
    assert_eq!(
        (who.status.as_u16(), who.header("cache-control")),
        (200, "no-store")
    );
    let end = end.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let expected = json!({"credential": "key", "tenant": "acme", "owner": "ann", "scopes": ["read"], "expires_at": end});
    assert_eq!(who.json(), expected);
    let lower_case = gateway
        .with_header(
            ("GET", SESSION),
            "authorization",
            &format!("bearer {}", key.reveal()),
        )
        .await;
    assert_eq!(lower_case.status, 200);
}

#[tokio::test]
async fn what_is_no_key_opens_nothing() {
    let gateway = gateway(config()).await;
    let (key, other) = (acme(&gateway).await, acme(&gateway).await);
    let route = ("GET", "/conversations");
    let secret = key.reveal();
    let other_secret = other.reveal();
    // The random part may begin with `_` too.
    let (_, other_random) = other_secret
        .split_once(&format!("{}_", other.id()))
        .unwrap();
    let mixed = format!("evk_{}_{other_random}", key.id());
    let unknown = secret.replace(key.id(), "0011223344556677");
    for (credential, why) in [
        (mixed.as_str(), "not known"),
        (unknown.as_str(), "not known"),
        (&secret[..secret.len() - 1], "not a key"),
        (&secret.replace("evk", "evs"), "not a key"),
        ("", "must be"),
        ("a.b.c", "not a key"),
    ] {
        assert_unauthenticated(&gateway.bearer(route, credential).await, why);
    }
    for header in ["Basic YTpi", "Bearer", &secret] {
        assert_unauthenticated(
            &gateway.with_header(route, "authorization", header).await,
            "must be",
        );
    }
    let twice = gateway
        .request("GET", route.1)
        .bearer_auth(&secret)
        .bearer_auth(other.reveal());
    assert_unauthenticated(&Answer::of(twice.send().await.unwrap()).await, "must be");
    for name in ["access_token", "token", "key", "api_key", "authorization"] {
        let answer = gateway
            .get(&format!("/conversations?{name}={secret}"))
            .await;
        answer.assert_problem(401, "unauthenticated");
    }
    assert_eq!(gateway.bearer(route, &secret).await.status, 200);
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say() {
    let gateway = gateway(config()).await;
    gateway.store.add("c", "acme");
    for (scopes, may_read, may_write) in [
        ("read", true, false),
        ("write", false, true),
        ("approve", false, false),
        ("read write", true, true),
    ] {
        let key = key(&gateway, Access::tenant("acme"), scopes, None).await;
        for route in ROUTES
            .into_iter()
            .filter(|(_, path)| *path != SESSION && !path.ends_with("stream") && *path != "/chat")
        {
            let answer = gateway.bearer(route, &key.reveal()).await;
            let (may, scope) = if route.0 == "GET" {
                (may_read, "read")
            } else {
                (may_write, "write")
            };
            if may {
                assert!(
                    answer.status.is_success(),
                    "{scopes}: {route:?} {}",
                    answer.text
                );
            } else {
                answer.assert_problem(403, "insufficient_scope");
                let expected = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                assert_eq!(
                    answer.header("www-authenticate"),
                    expected,
                    "{scopes}: {route:?}"
                );
            }
        }
        assert_eq!(
            gateway.bearer(("GET", SESSION), &key.reveal()).await.status,
            200,
            "who one is needs no scope"
        );
    }
}

#[tokio::test]
async fn nobody_sees_what_is_another_tenants_or_owners() {
    let gateway = gateway(config()).await;
    let all = "read write";
    let ann = key(&gateway, Access::owner("acme", "ann"), all, None).await;
    let made = gateway
        .bearer(("POST", "/conversations"), &ann.reveal())
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let bob = key(&gateway, Access::owner("acme", "bob"), all, None).await;
    let stranger = key(&gateway, Access::tenant("other"), all, None).await;
    let of_one = |(method, path): (&'static str, &str)| {
        Some((method, path.strip_prefix("/conversations/c")?.to_owned()))
    };
    let routes: Vec<_> = ROUTES.into_iter().filter_map(of_one).collect();
    assert_eq!(routes.len(), 9);
    for secret in [&bob, &stranger] {
        for (method, rest) in &routes {
            let answer = gateway
                .bearer(
                    (method, &format!("/conversations/{id}{rest}")),
                    &secret.reveal(),
                )
                .await;
            answer.assert_problem(404, "conversation_not_found");
        }
        let list = gateway
            .bearer(("GET", "/conversations"), &secret.reveal())
            .await
            .json();
        assert_eq!(list["conversations"], json!([]));
        let taken = gateway
            .request("POST", "/conversations")
            .bearer_auth(secret.reveal())
            .json(&json!({"id": id}));
        let taken = Answer::of(taken.send().await.unwrap()).await;
        if secret == &bob {
            taken.assert_problem(409, "conversation_id_taken");
        } else {
            // In another tenant it is another conversation.
            assert_eq!(taken.status, 201, "{}", taken.text);
        }
    }
    assert_eq!(gateway.turns.take().len(), 0, "nothing reached the engine");
    for secret in [ann, acme(&gateway).await] {
        let list = gateway
            .bearer(("GET", "/conversations"), &secret.reveal())
            .await
            .json();
        assert_eq!(list["conversations"][0]["id"], id.as_str());
    }
}

#[tokio::test]
async fn an_expired_or_revoked_key_opens_nothing() {
    let gateway = gateway(config()).await;
    let route = ("GET", "/conversations");
    let expired = key(&gateway, Access::tenant("acme"), "read", Some(in_ms(-1))).await;
    assert_unauthenticated(&gateway.bearer(route, &expired.reveal()).await, "expired");
    let key = acme(&gateway).await;
    assert_eq!(gateway.bearer(route, &key.reveal()).await.status, 200);
    gateway.keys.revoke_key(key.id(), None).await.unwrap();
    eventually("the key is refused", || async {
        gateway.bearer(route, &key.reveal()).await.status == 401
    })
    .await;
    assert_unauthenticated(&gateway.bearer(route, &key.reveal()).await, "revoked");
}

#[tokio::test]
async fn a_key_in_use_is_taken_from_memory() {
    let gateway = gateway(AuthConfig {
        key_cache: std::time::Duration::from_secs(60),
        ..config()
    })
    .await;
    let key = acme(&gateway).await;
    let route = ("GET", "/conversations");
    assert_eq!(gateway.bearer(route, &key.reveal()).await.status, 200);
    eventually("the use is noted", || async {
        gateway
            .keys
            .find_key(key.id())
            .await
            .unwrap()
            .unwrap()
            .last_used_at
            .is_some()
    })
    .await;
    gateway.keys.close().await;
    assert_eq!(gateway.bearer(route, &key.reveal()).await.status, 200);
    let unknown = key.reveal().replace(key.id(), "0011223344556677");
    let answer = gateway.bearer(route, &unknown).await;
    answer.assert_problem(503, "store_unavailable");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn use_is_noted_once_a_minute() {
    let gateway = gateway(AuthConfig {
        key_cache: std::time::Duration::ZERO,
        ..config()
    })
    .await;
    let key = acme(&gateway).await;
    let last_used = async || {
        gateway
            .keys
            .find_key(key.id())
            .await
            .unwrap()
            .unwrap()
            .last_used_at
    };
    gateway.bearer(("GET", SESSION), &key.reveal()).await;
    eventually("the use is noted", || async { last_used().await.is_some() }).await;
    let first = last_used().await.unwrap();
    assert!(Utc::now() - first < TimeDelta::minutes(1));
    for _ in 0..20 {
        gateway.bearer(("GET", SESSION), &key.reveal()).await;
    }
    assert_eq!(last_used().await, Some(first));
}

#[tokio::test]
async fn memory_for_keys_is_bounded() {
    let gateway = gateway(AuthConfig {
        max_cached_keys: 2,
        key_cache: std::time::Duration::from_secs(60),
        ..config()
    })
    .await;
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(acme(&gateway).await);
    }
    for key in keys.iter().chain(&keys) {
        assert_eq!(
            gateway.bearer(("GET", SESSION), &key.reveal()).await.status,
            200
        );
    }
}

#[tokio::test]
async fn an_open_stream_ends_with_its_key() {
    let gateway = gateway(config()).await;
    gateway.store.add("c", "acme");
    gateway
        .store
        .append("acme~c", "m", "user_message", r#"{"content":"hi"}"#);
    let open = async |credential: String| {
        let request = gateway
            .request("GET", "/conversations/c/events/stream")
            .bearer_auth(credential);
        let mut stream = Sse::of(request.send().await.unwrap());
        assert_eq!(stream.names(2).await, ["replay", "user_message 1"]);
        stream
    };
    let end = in_ms(4_000);
    let expiring = key(&gateway, Access::tenant("acme"), "read", Some(end)).await;
    let (revoked, lasting) = (acme(&gateway).await, acme(&gateway).await);
    let mut of_expiring = open(expiring.reveal()).await;
    let mut of_revoked = open(revoked.reveal()).await;
    let mut of_lasting = open(lasting.reveal()).await;
    gateway.keys.revoke_key(revoked.id(), None).await.unwrap();
    assert_eq!(of_revoked.names(1).await, ["end 1"], "revoked");
    assert_eq!(of_expiring.names(1).await, ["end 1"], "expired");
    assert!(Utc::now() >= end, "not before its time");
    gateway
        .store
        .append("acme~c", "m", "thought", r#"{"thought":"hm"}"#);
    assert_eq!(of_lasting.names(1).await, ["thought 2"], "the others go on");
}

#[tokio::test]
async fn allowing_tools_is_a_right_of_its_own() {
    let gateway = gateway(config()).await;
    gateway.store.add("c", "acme");
    let may_not = key(&gateway, Access::tenant("acme"), "read write", None).await;
    let may = key(&gateway, Access::tenant("acme"), "approve", None).await;
    for path in [
        "/conversations/c/approvals/exec_1",
        "/conversations/c/tool-calls/exec_1/outcome",
    ] {
        let route = ("POST", path);
        let answer = gateway.bearer(route, &may_not.reveal()).await;
        answer.assert_problem(403, "insufficient_scope");
        assert!(
            answer
                .header("www-authenticate")
                .contains(r#"scope="approve""#)
        );
        // It comes as far as its body, which does not suit this route.
        gateway
            .bearer(route, &may.reveal())
            .await
            .assert_problem(400, "invalid_body");
    }
}
