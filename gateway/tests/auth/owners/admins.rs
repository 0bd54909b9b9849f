//! Which admins may change which owners, and which credentials a change reaches.

use everturn_store::Access;
use serde_json::json;

use super::{Admin, LIST, OWNERS};
use crate::auth::{SESSION, config, key, sessions::open};

#[tokio::test]
async fn admins_change_owners_of_their_tenant_only() {
    let admin = Admin::new(config()).await;
    let gateway = &admin.gateway;
    let writer = key(gateway, Access::tenant("acme"), "read write", None)
        .await
        .reveal();
    let of_all = key(gateway, Access::tenant("ops"), "admin:all", None)
        .await
        .reveal();
    let body = json!({"owner": "ann", "change": "refuse", "tenant": "umbrella"});
    for credential in [&writer, &admin.key] {
        let answer = admin.post(credential, body.clone()).await;
        answer.assert_problem(403, "insufficient_scope");
    }
    let ann = admin.token("umbrella", "ann", 5);
    assert_eq!(admin.status(&ann).await, 200);
    assert_eq!(admin.post(&of_all, body).await.status, 200);
    // Another gateway would follow within `key_cache`; this gateway follows at once.
    assert_eq!(admin.status(&ann).await, 403);
    let path = format!("{OWNERS}?tenant=umbrella");
    let answer = gateway.bearer(("GET", &path), &admin.key).await;
    answer.assert_problem(403, "insufficient_scope");
    let listed = gateway.bearer(("GET", &path), &of_all).await.json();
    assert_eq!(listed["owners"][0]["owner"], "ann");
    for bad in [
        json!({"owner": "", "change": "refuse"}),
        json!({"owner": "ann", "change": "end"}),
    ] {
        admin
            .post(&admin.key, bad)
            .await
            .assert_problem(400, "invalid_body");
    }
}

/// The rule of keys: an admin of one tenant ends no credential with rights over every tenant.
#[tokio::test]
async fn an_admin_of_a_tenant_ends_no_credential_of_an_admin_of_all() {
    let admin = Admin::new(config()).await;
    let gateway = &admin.gateway;
    let of_all = key(gateway, Access::tenant("ops"), "admin:all", None).await;
    let of_all = of_all.reveal();
    let owned = key(
        gateway,
        Access::owner("acme", "ann"),
        "read admin:all",
        None,
    )
    .await;
    let (owned, token) = (owned.reveal(), admin.token_of_all());
    let cookie = open(gateway, &token).await;
    let plain = admin.token("acme", "ann", 5);
    let by_cookie = async || gateway.with_header(LIST, "cookie", &cookie).await.status;
    for change in ["end_sessions", "refuse"] {
        let changed = admin.change("ann", change).await;
        assert_eq!(changed["is_all_refused"], false);
        assert_ne!(admin.status(&plain).await, 200, "{change}");
        for credential in [&owned, &token] {
            assert_eq!(admin.status(credential).await, 200, "{change}");
        }
        assert_eq!(by_cookie().await, 200, "{change}");
    }
    // An admin of every tenant reaches every credential, and alone allows the person.
    let body = |change: &str| json!({"tenant": "acme", "owner": "ann", "change": change});
    let refused = admin.post(&of_all, body("refuse")).await;
    assert_eq!(refused.json()["is_all_refused"], true, "{}", refused.text);
    for credential in [&owned, &token, &plain] {
        let answer = gateway.bearer(("GET", SESSION), credential).await;
        answer.assert_problem(403, "owner_refused");
    }
    assert_eq!(by_cookie().await, 403);
    let answer = admin.post(&admin.key, body("allow")).await;
    answer.assert_problem(403, "insufficient_scope");
    assert_eq!(admin.post(&of_all, body("allow")).await.status, 200);
    assert_eq!(admin.status(&owned).await, 200);
    // The sign-ins of the refused time stay ended.
    assert_eq!(admin.status(&token).await, 401);
}
