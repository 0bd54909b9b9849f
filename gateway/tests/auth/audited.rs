//! Audit entries of reads: the codec server, and reads of admins.

use everturn_codec::{Codec, KeyRing, generate_key};
use everturn_gateway::{GatewayConfig, config::CodecServer};
use everturn_proto::words::AuditAction;
use everturn_store::{Access, AuditEntry, AuditQuery, AuditTrail};
use serde_json::json;

use super::{config, gateway, key};
use crate::support::{Answer, TestGateway};

async fn entries(gateway: &TestGateway, action: AuditAction) -> Vec<AuditEntry> {
    let query = AuditQuery {
        action: Some(action),
        ..AuditQuery::default()
    };
    gateway.keys.audit_entries(&query).await.unwrap()
}

#[tokio::test]
async fn the_codec_server_tells_who_had_payloads_decrypted() {
    let ring = KeyRing::parse(&generate_key("k").unwrap()).unwrap();
    let gateway = TestGateway::with(GatewayConfig {
        auth: config(),
        codec: Some(CodecServer {
            codec: Codec::new(ring),
            operator_tenants: Vec::new(),
        }),
        ..GatewayConfig::default()
    })
    .await;
    let reader = key(&gateway, Access::tenant("acme"), "codec", None).await;
    let ask = async |path: &str, body: &serde_json::Value| {
        let request = gateway.request("POST", path).bearer_auth(reader.reveal());
        Answer::of(request.json(body).send().await.unwrap()).await
    };
    let clear = json!({"payloads": [{"metadata": {}, "data": "MQ=="}]});
    let sealed = ask("/api/v1/codec/encode", &clear).await.json();
    let mixed = json!({"payloads": [sealed["payloads"][0], clear["payloads"][0]]});
    assert_eq!(ask("/api/v1/codec/decode", &mixed).await.status, 200);
    for (action, payloads, decrypted) in [
        (AuditAction::PayloadsEncoded, 1, None),
        (AuditAction::PayloadsDecoded, 2, Some(1)),
    ] {
        let [entry] = entries(&gateway, action).await.try_into().unwrap();
        assert_eq!(
            (entry.tenant_id.as_deref(), entry.actor_id.as_deref()),
            (Some("acme"), Some(reader.id()))
        );
        assert_eq!(entry.details.0["payloads"], payloads);
        let told = entry
            .details
            .0
            .get("decrypted")
            .and_then(serde_json::Value::as_u64);
        assert_eq!(told, decrypted);
    }
}

#[tokio::test]
async fn reads_of_admins_have_an_entry_that_stands_for_equal_reads() {
    let gateway = gateway(config()).await;
    let acme = key(&gateway, Access::tenant("acme"), "admin", None).await;
    let ops = key(&gateway, Access::tenant("ops"), "admin:all", None).await;
    for (path, action) in [
        ("keys", AuditAction::KeysListed),
        ("tenants", AuditAction::TenantsListed),
        ("usage", AuditAction::UsageRead),
        ("failures", AuditAction::FailuresRead),
        ("audit", AuditAction::AuditRead),
    ] {
        // A later page has the entry, too: `after` hides no read.
        let after = if path == "keys" { "?after=0" } else { "" };
        for admin in [&acme, &acme, &ops] {
            let path = format!("/api/v1/admin/{path}{after}");
            let read = gateway.bearer(("GET", &path), &admin.reveal()).await;
            assert_eq!(read.status, 200, "{}", read.text);
        }
        let entries = entries(&gateway, action).await;
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.actor_id.as_deref().unwrap(), entry.target_id.as_str()))
            .collect();
        assert_eq!(told, [(acme.id(), "acme"), (ops.id(), "")], "{path}");
    }
}
