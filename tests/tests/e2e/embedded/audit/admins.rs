//! The scope `admin`: nobody sees more of the audit trail, or of the keys, than they may, and no admin gives more than they
//! have.

use std::collections::BTreeSet;

use everturn_tests::wait;
use serde_json::{Value, json};

use super::{Api, caller, counted, id, is_refused, stack};
use crate::embedded::keys::create;

#[tokio::test]
async fn nobody_sees_more_of_it_than_they_may() {
    let stack = stack().await;
    let user = caller(&stack, "acme", "read,write,approve").await;
    let admin = caller(&stack, "acme", "admin").await;
    let other = caller(&stack, "umbrella", "admin").await;
    let of_all = caller(&stack, "ops", "admin:all").await;
    let _running = stack.start().await;
    user.post("/agent/conversations", json!({"id": "seen"}))
        .await;
    user.ask("DELETE", "/agent/conversations/seen", None).await;

    for path in [
        "audit",
        "audit?format=jsonl",
        "failures",
        "failures/counts",
        "keys",
        "tenants",
        "usage",
    ] {
        let path = format!("/admin/{path}");
        user.may_not("GET", &path, None).await;
        admin.get("/auth/session").await;
    }
    admin.may_not("GET", "/agent/conversations", None).await;
    let of_tenants = |entries: Vec<Value>| {
        let tenants = entries.into_iter().map(|entry| entry["tenant"].clone());
        let mut tenants: Vec<_> = tenants.map(|tenant| tenant.to_string()).collect();
        tenants.sort_unstable();
        tenants.dedup();
        tenants
    };
    assert_eq!(of_tenants(admin.entries("").await), [r#""acme""#]);
    assert_eq!(of_tenants(other.entries("").await), [r#""umbrella""#]);
    for path in ["audit", "failures", "failures/counts", "keys", "usage"] {
        let path = format!("/admin/{path}?tenant=acme");
        other.may_not("GET", &path, None).await;
        of_all.get(&path).await;
    }
    let lines = other
        .request("GET", "/admin/audit?format=jsonl")
        .send()
        .await;
    let lines = lines.unwrap().text().await.unwrap();
    assert!(!lines.contains("acme") && lines.contains("umbrella"));

    let tenants = of_tenants(of_all.entries("").await);
    for tenant in [r#""acme""#, r#""umbrella""#, r#""ops""#] {
        assert!(tenants.iter().any(|it| it == tenant), "{tenants:?}");
    }
    assert_is_loaded(&of_all).await;
    let names = |list: Value| {
        let names = list["tenants"].as_array().unwrap().iter();
        names.map(|it| it["tenant"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(other.get("/admin/tenants").await), ["umbrella"]);
    let all = names(of_all.get("/admin/tenants").await);
    assert_eq!(all, ["acme", "ops", "umbrella"]);
    let keys = other.get("/admin/keys").await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
}

/// Gateways and workers have told by which configuration they work.
async fn assert_is_loaded(of_all: &Api<'_>) {
    wait::until("both roles have told the same configuration", || async {
        let loaded = of_all.entries("&action=configuration_loaded").await;
        let told = |field: &str, word: &str| {
            let words = loaded.iter().filter_map(|it| it[field][word].as_str());
            words.map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let (roles, hashes) = (told("details", "role"), told("target", "id"));
        let is_one_hash = hashes.len() == 1 && hashes.iter().all(|hash| hash.len() == 64);
        (is_one_hash && roles.iter().eq(["gateway", "worker"])).then_some(())
    })
    .await;
}

/// An admin key that has leaked does not become more than it is.
#[tokio::test]
async fn an_admin_gives_no_key_more_than_they_have() {
    let stack = stack().await;
    let admin = caller(&stack, "acme", "admin,read").await;
    let of_all = caller(&stack, "ops", "admin:all,read").await;
    let args = ["--tenant", "acme", "--owner", "ann", "--expires", "1h"];
    let args = [&args[..], &["--scope", "admin,read"]].concat();
    let ann = Api {
        stack: &stack,
        key: create(&stack, &args).await,
    };
    let _gateway = stack.gateway().await;
    let keys = "/admin/keys";
    for (by, body) in [
        (&admin, json!({"scopes": ["read", "write"]})),
        (&admin, json!({"scopes": ["approve"]})),
        (&admin, json!({"scopes": ["admin:all"]})),
        (&admin, json!({"scopes": ["read"], "tenant": "umbrella"})),
        (&admin, json!({})),
        (&ann, json!({"scopes": ["read"], "owner": "bob"})),
        (&of_all, json!({"scopes": ["write"], "tenant": "umbrella"})),
    ] {
        by.may_not("POST", keys, Some(body)).await;
    }
    let longer = json!({"scopes": ["read"], "lifetime_s": 7200});
    assert_eq!(ann.ask("POST", keys, Some(longer)).await.0, 400);

    let made = ann.post(keys, json!({"scopes": ["read"]})).await;
    assert_eq!(made["owner"], "ann", "{made}");
    assert!(made["expires_at"].is_string(), "{made}");
    let made = of_all
        .post(
            keys,
            json!({"scopes": ["read", "admin"], "tenant": "umbrella", "name": "x"}),
        )
        .await;
    let other = Api {
        stack: &stack,
        key: made["key"].as_str().unwrap().to_owned(),
    };
    other.get("/agent/conversations").await;
    // One tenant's admin revokes neither another tenant's key nor that of an admin of all.
    for by in [&admin, &ann] {
        let path = format!("{keys}/{}", id(&other.key));
        let (status, body) = by.ask("DELETE", &path, None).await;
        assert_eq!((status, &body["code"]), (404, &json!("key_not_found")));
    }
    let path = format!("{keys}/{}", id(&other.key));
    assert_eq!(of_all.ask("DELETE", &path, None).await.0, 200);
    // Other gateways look at a key again after some seconds.
    is_refused(&other).await;
    let told = counted(&of_all.entries("&tenant=umbrella").await);
    assert_eq!(told["key_created done key"], 1, "{told:#?}");
    assert_eq!(told["key_revoked done key"], 1, "{told:#?}");
}
