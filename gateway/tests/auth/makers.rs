//! Keys know their makers, and a revocation reaches the keys that a key made.

use everturn_store::{Access, Keys};
use serde_json::{Value, json};

use super::{
    SESSION, config, gateway,
    issuer::{Issuer, SigningKey},
    key,
};
use crate::support::{Answer, TestGateway};
use everturn_gateway::{
    AuthConfig,
    config::{OidcConfig, Scope},
};

const KEYS: &str = "/api/v1/admin/keys";

async fn make(gateway: &TestGateway, credential: &str) -> (String, String) {
    let request = gateway.request("POST", KEYS).bearer_auth(credential);
    let body = json!({"scopes": ["admin", "read", "write"]});
    let made = Answer::of(request.json(&body).send().await.unwrap()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

async fn revoke(gateway: &TestGateway, credential: &str, id: &str, query: &str) -> Value {
    let path = format!("{KEYS}/{id}{query}");
    let request = gateway.request("DELETE", &path).bearer_auth(credential);
    let revoked = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text);
    revoked.json()
}

#[tokio::test]
async fn a_key_knows_its_maker_and_a_revocation_takes_the_made_keys() {
    let gateway = gateway(config()).await;
    let admin = key(&gateway, Access::tenant("acme"), "admin read write", None).await;
    let (stolen, stolen_key) = make(&gateway, &admin.reveal()).await;
    let (made, made_key) = make(&gateway, &stolen_key).await;
    // A session of the key makes keys of the key.
    let opened = gateway.bearer(("POST", SESSION), &made_key).await;
    let cookie = opened
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let by_session = gateway.request("POST", KEYS).header("cookie", cookie);
    let by_session = by_session
        .header("sec-fetch-site", "same-origin")
        .json(&json!({"scopes": ["read"]}));
    let by_session = Answer::of(by_session.send().await.unwrap()).await;
    assert_eq!(by_session.status, 201, "{}", by_session.text);
    let by_session = by_session.json()["id"].as_str().unwrap().to_owned();

    let listed = gateway.bearer(("GET", KEYS), &admin.reveal()).await.json();
    let maker = |id: &str| {
        let mut keys = listed["keys"].as_array().unwrap().iter();
        let key = keys.find(|key| key["id"] == *id).unwrap();
        (key["made_by_key"].clone(), key["made_by_subject"].clone())
    };
    assert_eq!(maker(admin.id()), (Value::Null, Value::Null));
    assert_eq!(maker(&stolen), (json!(admin.id()), Value::Null));
    assert_eq!(maker(&made), (json!(stolen), Value::Null));
    assert_eq!(maker(&by_session), (json!(made), Value::Null));

    // Without the parameter, the key alone ends.
    let alone = revoke(&gateway, &admin.reveal(), &stolen, "").await;
    assert_eq!(alone, json!({"revoked": [stolen], "has_more": false}));
    assert_eq!(
        gateway.bearer(("GET", SESSION), &made_key).await.status,
        200
    );
    let mut expected = [made, by_session];
    expected.sort();
    let with_made = revoke(&gateway, &admin.reveal(), &stolen, "?made=true").await;
    assert_eq!(with_made, json!({"revoked": expected, "has_more": false}));
    assert_eq!(
        gateway.bearer(("GET", SESSION), &made_key).await.status,
        401
    );
    assert_eq!(
        gateway
            .bearer(("GET", SESSION), &admin.reveal())
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_key_that_a_token_made_has_the_tokens_subject() {
    let signing = SigningKey::rsa("rsa");
    let issuer = Issuer::start(&[&signing]).await;
    let admin = vec![Scope::Admin, Scope::Read, Scope::Write];
    let gateway = gateway(AuthConfig {
        oidc: vec![OidcConfig {
            scopes: [("read".to_owned(), admin)].into(),
            ..issuer.config()
        }],
        ..config()
    })
    .await;
    let (made, _key) = make(&gateway, &signing.sign(&issuer.claims())).await;
    let made = gateway.keys.find_key(&made).await.unwrap().unwrap().made_by;
    assert_eq!((made.key, made.subject.as_deref()), (None, Some("ann")));
}
