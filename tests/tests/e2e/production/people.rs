//! An admin ends the sign-ins of a person, or refuses the person, on one gateway. The other gateway follows within the time of
//! docs/auth.md, and every open stream of the person ends.

use std::time::Duration;

use axum::{Json, Router, routing::get};
use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
    wait,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp, jwk::Jwk};
use rcgen::KeyPair;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::Instant};

use crate::embedded::keys::create;

/// The default of `key_cache`: the time within which every gateway follows.
const KEY_CACHE: Duration = Duration::from_secs(5);

/// The gateways look at the credential of an open stream every 10 s.
const STREAM_ENDS_WITHIN: Duration = Duration::from_secs(15);

/// The time that a busy machine may need besides, until a test sees the end of a stream.
const SEEN_WITHIN: Duration = Duration::from_secs(15);

/// An identity provider that signs tokens of one key.
struct Issuer {
    url: String,
    key: EncodingKey,
}

impl Issuer {
    async fn start() -> Self {
        let pair = KeyPair::generate().unwrap();
        let key = EncodingKey::from_ec_der(&pair.serialize_der());
        let mut public = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        public.common.key_id = Some("one".into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let published = Json(json!({"keys": [public]}));
        let router = Router::new().route("/keys", get(|| async { published }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, key }
    }

    /// The configuration of gateways that take the tokens.
    fn config(&self) -> String {
        let url = &self.url;
        format!(
            "[auth]\nrequired = true\n\n[auth.oidc]\nissuer = \"{url}\"\naudience = \"a\"\nalgorithms = [\"ES256\"]\n\
             jwks_url = \"{url}/keys\"\n"
        )
    }

    fn token(&self, sub: &str) -> String {
        let now = get_current_timestamp();
        let claims = json!({"iss": self.url, "aud": "a", "sub": sub, "tenant": "acme", "scope": "read",
                            "iat": now - 1, "exp": now + 600});
        let header = Header {
            kid: Some("one".into()),
            ..Header::new(Algorithm::ES256)
        };
        encode(&header, &claims, &self.key).unwrap()
    }
}

/// A credential of a person: a name and a value of a header.
type Sent = (&'static str, String);

fn bearer(credential: &str) -> Sent {
    ("authorization", format!("Bearer {credential}"))
}

/// A request to one of the gateways.
fn request(stack: &Stack, gateway: usize, method: &str, path: &str, sent: &Sent) -> RequestBuilder {
    let url = format!("{}/api/v1{path}", stack.gateway_url(gateway));
    let request = stack.http.request(method.parse().unwrap(), url);
    request.header(sent.0, &sent.1)
}

async fn open_session(stack: &Stack, credential: &str) -> Sent {
    let opened = request(stack, 0, "POST", "/auth/session", &bearer(credential));
    let opened = opened.send().await.unwrap();
    let cookie = opened.headers()["set-cookie"].to_str().unwrap();
    ("cookie", cookie.split(';').next().unwrap().to_owned())
}

async fn list(stack: &Stack, sent: &Sent) -> StatusCode {
    let listed = request(stack, 1, "GET", "/agent/conversations", sent).send();
    listed.await.unwrap().status()
}

/// Opens a stream of the second gateway.
async fn stream(stack: &Stack, sent: &Sent) -> Response {
    let path = "/agent/conversation-list/stream";
    let opened = request(stack, 1, "GET", path, sent).send().await.unwrap();
    assert_eq!(opened.status(), StatusCode::OK);
    opened
}

/// Reads a stream to the end.
async fn read_to_end(mut stream: Response) {
    while let Ok(Some(_)) = stream.chunk().await {}
}

/// Changes `ann` on the first gateway. Returns the time at which the gateway had made the change.
async fn change(stack: &Stack, admin: &Sent, change: &str) -> Instant {
    let body = json!({"owner": "ann", "change": change});
    let asked = request(stack, 0, "POST", "/admin/owners", admin).json(&body);
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    Instant::now()
}

/// Asserts that the second gateway answers with the status, at the latest to a request [`KEY_CACHE`] after the change.
async fn follows(stack: &Stack, sent: &Sent, changed: Instant, expected: u16) {
    wait::until("the other gateway follows", || async {
        let began = changed.elapsed();
        let status = list(stack, sent).await;
        assert!(
            status == expected || began < KEY_CACHE,
            "{status} {began:?} after the change"
        );
        (status == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_person_who_is_refused_on_one_gateway_is_refused_on_the_other() {
    let model = Model::start(|_| Reply::text("Hi there.")).await;
    let stack = Stack::new(model).await.with_gateways(2);
    let issuer = Issuer::start().await;
    stack.configure(&issuer.config());
    let admin = bearer(&create(&stack, &["--tenant", "acme", "--scope", "admin"]).await);
    let key = create(&stack, &["--tenant", "acme", "--owner", "ann"]).await;
    let _gateways = stack.gateway().await;
    let token = issuer.token("ann");
    let of_token = open_session(&stack, &token).await;
    let of_key = open_session(&stack, &key).await;
    let (key, token, bob) = (bearer(&key), bearer(&token), bearer(&issuer.token("bob")));
    let sign_ins = [&token, &of_token, &of_key];

    // The second gateway has every credential in memory, and streams of every credential.
    let mut streams = Vec::new();
    for sent in sign_ins {
        streams.push(tokio::spawn(read_to_end(stream(&stack, sent).await)));
    }
    let of_bob = tokio::spawn(read_to_end(stream(&stack, &bob).await));
    let by_key = tokio::spawn(read_to_end(stream(&stack, &key).await));
    for sent in [&key, &token, &of_token, &of_key, &bob] {
        assert_eq!(list(&stack, sent).await, StatusCode::OK);
    }
    let ended = change(&stack, &admin, "end_sessions").await;
    for sent in sign_ins {
        follows(&stack, sent, ended, 401).await;
    }
    assert_eq!(
        list(&stack, &key).await,
        StatusCode::OK,
        "a key is no sign-in"
    );

    let refused = change(&stack, &admin, "refuse").await;
    follows(&stack, &key, refused, 403).await;
    streams.push(by_key);
    let deadline = refused + STREAM_ENDS_WITHIN + SEEN_WITHIN;
    for stream in streams {
        tokio::time::timeout_at(deadline, stream)
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(list(&stack, &bob).await, StatusCode::OK);
    assert!(!of_bob.is_finished());

    let allowed = change(&stack, &admin, "allow").await;
    follows(&stack, &key, allowed, 200).await;
    // Each credential has an entry of its own in the memory of the other gateway.
    follows(&stack, &token, allowed, 401).await;
    assert_audited(&stack, &admin).await;
}

/// Each change has an entry with the admin and the person.
async fn assert_audited(stack: &Stack, admin: &Sent) {
    for action in ["owner_sessions_ended", "owner_refused", "owner_allowed"] {
        let path = format!("/admin/audit?action={action}");
        let read = request(stack, 1, "GET", &path, admin).send().await.unwrap();
        let read: Value = read.json().await.unwrap();
        let entries = read["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{read}");
        let (target, actor) = (&entries[0]["target"], &entries[0]["actor"]["kind"]);
        assert_eq!(*target, json!({"kind": "owner", "id": "ann"}));
        assert_eq!(
            (actor, &entries[0]["outcome"]),
            (&json!("key"), &json!("done"))
        );
    }
}
