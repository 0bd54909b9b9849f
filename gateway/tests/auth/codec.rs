//! The codec server: who may have what decrypted, and what it takes.

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_codec::{Codec, KeyRing, generate_key};
use everturn_gateway::{GatewayConfig, config::CodecServer};
use everturn_store::Access;
use serde_json::{Value, json};

use super::{PAGE, config, gateway, key};
use crate::support::{Answer, TestGateway};

const DECODE: &str = "/api/v1/codec/decode";
const ENCODE: &str = "/api/v1/codec/encode";

async fn with_codec() -> TestGateway {
    let ring = KeyRing::parse(&generate_key("k").unwrap()).unwrap();
    TestGateway::with(GatewayConfig {
        auth: config(),
        codec: Some(CodecServer {
            codec: Codec::new(ring),
            operator_tenants: vec!["ops".to_owned()],
        }),
        ..GatewayConfig::default()
    })
    .await
}

async fn secret(gateway: &TestGateway, tenant: &str, scopes: &str) -> String {
    let secret = key(gateway, Access::tenant(tenant), scopes, None).await;
    secret.reveal()
}

async fn ask(gateway: &TestGateway, path: &str, secret: &str, body: &Value) -> Answer {
    let request = gateway.request("POST", path).bearer_auth(secret).json(body);
    Answer::of(request.send().await.unwrap()).await
}

fn payload(text: &str) -> Value {
    json!({"metadata": {"encoding": STANDARD.encode("json/plain")}, "data": STANDARD.encode(text)})
}

#[tokio::test]
async fn what_one_tenant_encrypts_is_read_by_itself_and_by_operators() {
    let gateway = with_codec().await;
    let acme = secret(&gateway, "acme", "codec").await;
    let clear = json!({"payloads": [payload("\"secret\""), payload("1")]});
    let sealed = ask(&gateway, ENCODE, &acme, &clear).await.json();
    let first = &sealed["payloads"][0];
    assert_eq!(
        first["metadata"]["encoding"],
        STANDARD.encode("binary/encrypted")
    );
    assert_eq!(
        first["metadata"]["encryption-tenant"],
        STANDARD.encode("acme")
    );
    assert_ne!(first["data"], clear["payloads"][0]["data"]);
    for (tenant, read) in [("acme", &clear), ("ops", &clear), ("other", &sealed)] {
        let secret = secret(&gateway, tenant, "codec").await;
        let decoded = ask(&gateway, DECODE, &secret, &sealed).await;
        assert_eq!(decoded.status, 200);
        assert_eq!(decoded.json(), *read, "{tenant}");
    }
    // What is in clear, or of a key that is not there, comes back as it is.
    let mut unknown = first.clone();
    unknown["metadata"]["encryption-key-id"] = json!(STANDARD.encode("gone"));
    let mixed = json!({"payloads": [payload("1"), unknown]});
    assert_eq!(ask(&gateway, DECODE, &acme, &mixed).await.json(), mixed);
}

#[tokio::test]
async fn an_operator_encrypts_for_the_tenant_that_is_named() {
    let gateway = with_codec().await;
    let ops = secret(&gateway, "ops", "codec").await;
    let named = payload(r#"{"conversation_id":"c","tenant_id":"acme"}"#);
    let body = json!({"payloads": [named, payload("1")]});
    let sealed = ask(&gateway, ENCODE, &ops, &body).await.json();
    let of = |number: usize| sealed["payloads"][number]["metadata"]["encryption-tenant"].clone();
    assert_eq!(of(0), STANDARD.encode("acme"));
    assert_eq!(of(1), Value::Null);
}

#[tokio::test]
async fn another_scope_and_another_body_are_refused() {
    let gateway = with_codec().await;
    let reader = secret(&gateway, "acme", "read write approve").await;
    let codec = secret(&gateway, "acme", "codec").await;
    for path in [DECODE, ENCODE] {
        let nothing = json!({"payloads": []});
        let refused = ask(&gateway, path, &reader, &nothing).await;
        refused.assert_problem(403, "insufficient_scope");
        assert_eq!(ask(&gateway, path, &codec, &nothing).await.json(), nothing);
        assert_eq!(
            ask(&gateway, path, &codec, &json!({})).await.json(),
            nothing
        );
        let many = json!({"payloads": vec![payload("1"); 1001]});
        for bad in [
            json!({"payloads": [{"data": "!"}]}),
            json!({"payloads": 1}),
            many,
        ] {
            let refused = ask(&gateway, path, &codec, &bad).await;
            refused.assert_problem(400, "invalid_body");
        }
        let large = json!({"payloads": [{"data": "A".repeat(7 * 1024 * 1024)}]});
        let refused = ask(&gateway, path, &codec, &large).await;
        refused.assert_problem(413, "body_too_large");
        // A payload of the size that the engine takes, in Base64, is larger than other bodies may be.
        let fits = json!({"payloads": [{"data": "A".repeat(4 * 1024 * 1024)}]});
        assert_eq!(ask(&gateway, path, &codec, &fits).await.status, 200);
    }
    // The scope gives no other right.
    let listed = gateway.bearer(("GET", "/conversations"), &codec).await;
    listed.assert_problem(403, "insufficient_scope");
}

#[tokio::test]
async fn without_keys_there_is_no_codec_server() {
    let gateway = gateway(config()).await;
    let codec = secret(&gateway, "acme", "codec").await;
    let refused = ask(&gateway, DECODE, &codec, &json!({"payloads": []})).await;
    refused.assert_problem(404, "not_found");
}

/// The Temporal UI runs in a browser, on an origin of its own.
#[tokio::test]
async fn the_ui_may_ask_from_its_origin() {
    let gateway = with_codec().await;
    let request = gateway.request("OPTIONS", DECODE);
    let request = request
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-namespace",
        );
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    let allowed = answer.header("access-control-allow-headers").to_lowercase();
    assert!(allowed.contains("x-namespace") && allowed.contains("authorization"));
}
