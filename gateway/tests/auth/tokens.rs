//! Tokens of an identity provider: what they say, and every way in which they are not valid.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use everturn_gateway::{
    AuthConfig,
    config::{Algorithm, OidcConfig, Scope},
};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::{
    SESSION, assert_unauthenticated, config, gateway,
    issuer::{Issuer, RSA, SigningKey},
};
use crate::support::{Sse, TestGateway};

const ROUTE: (&str, &str) = ("GET", "/conversations");

async fn gateway_of(oidc: OidcConfig) -> TestGateway {
    gateway(AuthConfig {
        oidc: vec![oidc],
        ..config()
    })
    .await
}

/// A gateway that takes the tokens of an issuer with one RSA key.
async fn with_rsa() -> (TestGateway, Issuer, SigningKey) {
    let key = SigningKey::rsa("rsa");
    let issuer = Issuer::start(&[&key]).await;
    (gateway_of(issuer.config()).await, issuer, key)
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn a_token_says_who_one_is() {
    let (gateway, issuer, key) = with_rsa().await;
    let claims = issuer.claims();
    let who = gateway.bearer(("GET", SESSION), &key.sign(&claims)).await;
    assert_eq!(who.status, 200, "{}", who.text);
    let who = who.json();
    assert_eq!(
        (&who["credential"], &who["tenant"], &who["owner"]),
        (&json!("token"), &json!("acme"), &json!("ann"))
    );
    assert_eq!(who["scopes"], json!(["read", "write"]));
    let end = DateTime::parse_from_rfc3339(who["expires_at"].as_str().unwrap()).unwrap();
    assert_eq!(
        end.timestamp(),
        claims["exp"].as_i64().unwrap() + 30,
        "with the leeway"
    );

    let made = gateway
        .bearer(("POST", "/conversations"), &key.sign(&claims))
        .await;
    let path = format!("/conversations/{}", made.json()["id"].as_str().unwrap());
    let bob = key.sign(&issuer.claims_with(&json!({"sub": "bob"})));
    gateway
        .bearer(("GET", &path), &bob)
        .await
        .assert_problem(404, "conversation_not_found");
    assert_eq!(
        gateway
            .bearer(("GET", &path), &key.sign(&claims))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn claims_that_are_not_as_they_must_be_are_refused() {
    let (gateway, issuer, key) = with_rsa().await;
    let too_long = "x".repeat(256);
    // The claims are made when they are sent, so that a slow machine does not age them.
    let refused = |now: u64| {
        [
            (json!({"exp": now - 31}), "expired"),
            (json!({"exp": null}), "neither a key"),
            (json!({"exp": "soon"}), "neither a key"),
            (json!({"exp": 1e15}), "max_token_lifetime"),
            (json!({"iat": "now"}), "neither a key"),
            (json!({"nbf": now + 60}), "not valid yet"),
            (json!({"nbf": "x"}), "neither a key"),
            (json!({"aud": "another"}), "another audience"),
            (json!({"aud": ["a", "b"]}), "another audience"),
            (json!({"aud": null}), "lacks"),
            (json!({"iss": "https://other.example"}), "issuer"),
            (json!({"iss": null}), "neither a key"),
            (json!({"iss": [issuer.url()]}), "neither a key"),
            (json!({"sub": null}), "neither a key"),
            (json!({"sub": ""}), "claim sub"),
            (json!({"sub": "a\nb"}), "claim sub"),
            (json!({"sub": too_long}), "claim sub"),
            (json!({"tenant": null}), "valid tenant"),
            (json!({"tenant": ""}), "valid tenant"),
            (json!({"tenant": "a/b"}), "valid tenant"),
            (json!({"tenant": ["acme"]}), "valid tenant"),
        ]
    };
    for case in 0..refused(get_current_timestamp()).len() {
        let (others, why) = &refused(get_current_timestamp())[case];
        let token = key.sign(&issuer.claims_with(others));
        assert_unauthenticated(&gateway.bearer(ROUTE, &token).await, why);
    }
    let taken = |now: u64| {
        [
            json!({"exp": now - 10}),
            json!({"nbf": now + 10}),
            json!({"aud": ["another", "everturn"]}),
            json!({"exp": f64::from(u32::try_from(now).unwrap()) + 60.5}),
            json!({"sub": "auth0|5f7c8ec7c33c6c004bbafe82"}),
        ]
    };
    for case in 0..taken(get_current_timestamp()).len() {
        let others = &taken(get_current_timestamp())[case];
        let token = key.sign(&issuer.claims_with(others));
        let answer = gateway.bearer(ROUTE, &token).await;
        assert_eq!(answer.status, 200, "{others} {}", answer.text);
    }
}

#[tokio::test]
async fn a_token_lives_no_longer_than_the_gateway_allows() {
    let key = SigningKey::rsa("rsa");
    let issuer = Issuer::start(&[&key]).await;
    let gateway = gateway_of(OidcConfig {
        max_token_lifetime: Duration::from_hours(1),
        ..issuer.config()
    })
    .await;
    let ask = async |times: Value| {
        let token = key.sign(&issuer.claims_with(&times));
        gateway.bearer(ROUTE, &token).await
    };
    let now = get_current_timestamp();
    for times in [
        json!({"iat": now, "exp": now + 3600}),
        json!({"iat": null, "exp": now + 3600}),
        // The issuer's clock is ahead.
        json!({"iat": now + 20, "exp": now + 3620}),
    ] {
        let answer = ask(times.clone()).await;
        assert_eq!(answer.status, 200, "{times} {}", answer.text);
    }
    for times in [
        json!({"iat": now, "exp": now + 4000}),
        json!({"iat": null, "exp": now + 4000}),
        // A time in the future shortens no lifetime.
        json!({"iat": now + 9000, "exp": now + 10_000}),
        // The token ends soon, and was made long ago.
        json!({"iat": now - 7200, "exp": now + 60}),
    ] {
        assert_unauthenticated(&ask(times).await, "max_token_lifetime");
    }
}

#[tokio::test]
async fn signatures_that_prove_nothing_are_refused() {
    let (gateway, issuer, key) = with_rsa().await;
    let claims = issuer.claims();
    let good = key.sign(&claims);
    assert_eq!(gateway.bearer(ROUTE, &good).await.status, 200);
    let (_, signature) = good.rsplit_once('.').unwrap();

    // No signature at all, in each spelling.
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for signature in ["", signature] {
            let token = format!(
                "{}.{}.{signature}",
                part(&json!({"alg": alg, "kid": "rsa"})),
                part(&claims)
            );
            assert_unauthenticated(&gateway.bearer(ROUTE, &token).await, "neither a key");
        }
    }
    // A shared secret that everyone knows: the public key in each form.
    let public = key.public();
    let secrets =
        [public.to_string(), public["n"].as_str().unwrap().to_owned()].map(String::into_bytes);
    let modulus = URL_SAFE_NO_PAD
        .decode(public["n"].as_str().unwrap())
        .unwrap();
    for secret in secrets
        .into_iter()
        .chain([modulus, RSA.to_vec(), Vec::new()])
    {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let header = Header {
                kid: Some("rsa".to_owned()),
                ..Header::new(algorithm)
            };
            let token = encode(&header, &claims, &EncodingKey::from_secret(&secret)).unwrap();
            assert_unauthenticated(&gateway.bearer(ROUTE, &token).await, "algorithm");
        }
    }
}

#[tokio::test]
async fn signatures_of_something_else_are_refused() {
    let (gateway, issuer, key) = with_rsa().await;
    let claims = issuer.claims();
    let good = key.sign(&claims);
    let (head, signature) = good.rsplit_once('.').unwrap();
    // The right key with an algorithm that is not in the list.
    let header = Header {
        kid: Some("rsa".to_owned()),
        ..Header::new(Algorithm::RS512)
    };
    assert_unauthenticated(
        &gateway
            .bearer(ROUTE, &key.sign_with(&header, &claims))
            .await,
        "algorithm",
    );
    // Another key, known and unknown by name; its own public key in the header.
    let forger = SigningKey::p256("rsa");
    assert_unauthenticated(
        &gateway.bearer(ROUTE, &forger.sign(&claims)).await,
        "algorithm",
    );
    let unknown = key.named("unknown");
    assert_unauthenticated(
        &gateway.bearer(ROUTE, &unknown.sign(&claims)).await,
        "does not publish",
    );
    // Other claims under the signature.
    let other = part(&issuer.claims_with(&json!({"tenant": "other"})));
    let token = format!("{}.{other}.{signature}", head.split_once('.').unwrap().0);
    assert_unauthenticated(&gateway.bearer(ROUTE, &token).await, "signature");
    // Extensions that must be understood.
    let header = Header {
        kid: Some("rsa".to_owned()),
        crit: Some(vec!["exp".to_owned()]),
        ..Header::new(Algorithm::RS256)
    };
    assert_unauthenticated(
        &gateway
            .bearer(ROUTE, &key.sign_with(&header, &claims))
            .await,
        "neither a key",
    );
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let (gateway, issuer, key) = with_rsa().await;
    let good = key.sign(&issuer.claims());
    let long = key.sign(&issuer.claims_with(&json!({"x": "x".repeat(20_000)})));
    for bad in [
        "a",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d",
        &good[1..],
        &format!("{good}.x"),
        &good.replace('.', ""),
        &long,
    ] {
        let answer = gateway.bearer(ROUTE, bad).await;
        // A header that HTTP itself finds too large does not get here.
        assert_unauthenticated(&answer, "neither a key");
    }
    let (head, signature) = good.rsplit_once('.').unwrap();
    let changed = format!("{head}.AAAA{}", &signature[4..]);
    assert_unauthenticated(&gateway.bearer(ROUTE, &changed).await, "signature");
    for name in ["access_token", "id_token", "token"] {
        gateway
            .get(&format!("/conversations?{name}={good}"))
            .await
            .assert_problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn keys_of_each_type_check_only_what_fits_them() {
    let keys = [
        SigningKey::rsa("rsa"),
        SigningKey::p256("p256"),
        SigningKey::ed25519("ed"),
    ];
    let issuer = Issuer::start(&keys.each_ref()).await;
    let unusable = json!({"kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "later"});
    let symmetric = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"});
    let encryption = |key: &SigningKey| {
        let mut public = key.public();
        public["use"] = json!("enc");
        public["kid"] = json!("enc");
        public
    };
    issuer.set(|answers| {
        answers
            .keys
            .extend([unusable, symmetric, encryption(&keys[1])]);
    });
    let algorithms = vec![
        Algorithm::RS256,
        Algorithm::PS256,
        Algorithm::ES256,
        Algorithm::EdDSA,
    ];
    let gateway = gateway_of(OidcConfig {
        algorithms,
        ..issuer.config()
    })
    .await;
    let claims = issuer.claims();
    for key in &keys {
        // Without a name it is the only key of its type.
        let nameless = key.sign_with(&Header::new(key.algorithm), &claims);
        for token in [key.sign(&claims), nameless] {
            let status = gateway.bearer(ROUTE, &token).await.status;
            assert_eq!(status, 200, "{}", key.kid);
        }
        for other in keys.iter().filter(|other| other.kid != key.kid) {
            let confused = key.named(&other.kid);
            assert_unauthenticated(
                &gateway.bearer(ROUTE, &confused.sign(&claims)).await,
                "does not publish",
            );
        }
    }
    // The key is published for RS256, and for nothing else.
    let header = Header {
        kid: Some("rsa".to_owned()),
        ..Header::new(Algorithm::PS256)
    };
    assert_unauthenticated(
        &gateway
            .bearer(ROUTE, &keys[0].sign_with(&header, &claims))
            .await,
        "does not publish",
    );
    let misused = keys[1].named("enc");
    assert_unauthenticated(
        &gateway.bearer(ROUTE, &misused.sign(&claims)).await,
        "does not publish",
    );
}

#[tokio::test]
async fn claims_are_read_as_configured() {
    let key = SigningKey::p256("k");
    let issuer = Issuer::start(&[&key]).await;
    let gateway = gateway_of(OidcConfig {
        algorithms: vec![Algorithm::ES256],
        tenant_claim: "https://example.com/org".to_owned(),
        scope_claim: "permissions".to_owned(),
        scopes: [("chat".to_owned(), vec![Scope::Read, Scope::Write])].into(),
        default_scopes: vec![Scope::Read],
        jwks_url: Some(format!("{}/keys", issuer.url())),
        ..issuer.config()
    })
    .await;
    issuer.set(|answers| answers.is_impostor = true);
    for (permissions, scopes) in [
        (json!(["chat", "other"]), json!(["read", "write"])),
        (json!("other chat"), json!(["read", "write"])),
        (json!(["read", "write"]), json!([])),
        (json!(null), json!(["read"])),
        (json!(5), json!([])),
    ] {
        let claims = issuer.claims_with(
            &json!({"https://example.com/org": "umbrella", "permissions": permissions}),
        );
        let who = gateway
            .bearer(("GET", SESSION), &key.sign(&claims))
            .await
            .json();
        assert_eq!(
            (&who["tenant"], &who["scopes"]),
            (&json!("umbrella"), &scopes),
            "{permissions}"
        );
    }
}

#[tokio::test]
async fn an_open_stream_ends_with_its_token() {
    let key = SigningKey::ed25519("k");
    let issuer = Issuer::start(&[&key]).await;
    let leeway = std::time::Duration::ZERO;
    let gateway = gateway_of(OidcConfig {
        algorithms: vec![Algorithm::EdDSA],
        leeway,
        ..issuer.config()
    })
    .await;
    let end = get_current_timestamp() + 5;
    let token = key.sign(&issuer.claims_with(&json!({"exp": end})));
    let made = gateway.bearer(("POST", "/conversations"), &token).await;
    let path = format!(
        "/conversations/{}/events/stream",
        made.json()["id"].as_str().unwrap()
    );
    let request = gateway.request("GET", &path).bearer_auth(&token).send();
    let mut stream = Sse::of(request.await.unwrap());
    assert_eq!(stream.names(2).await, ["replay", "end"]);
    assert!(stream.next().await.is_none());
    assert!(
        Utc::now().timestamp() >= i64::try_from(end).unwrap(),
        "not before its time"
    );
    super::eventually("the token is refused", || async {
        gateway.bearer(ROUTE, &token).await.status == 401
    })
    .await;
    assert_unauthenticated(&gateway.bearer(ROUTE, &token).await, "expired");
}
