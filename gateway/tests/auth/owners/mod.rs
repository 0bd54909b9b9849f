//! Admins end the sessions and tokens of a person, and refuse a person.

mod admins;

use std::time::Duration;

use chrono::TimeDelta;
use everturn_gateway::{AuthConfig, config::Scope};
use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{
    Access, AuditActor, AuditQuery, AuditTarget, AuditTrail, ChangedOwner, NewAuditEntry,
    OwnerChange, Owners, Reach,
};
use jsonwebtoken::get_current_timestamp;
use serde_json::{Value, json};

use super::{
    SESSION, assert_unauthenticated, config, eventually, gateway,
    issuer::{Issuer, SigningKey},
    key,
    sessions::open,
};
use crate::support::{Answer, Sse, TestGateway};

const OWNERS: &str = "/api/v1/admin/owners";
const LIST: (&str, &str) = ("GET", "/conversations");

/// A gateway, an issuer of tokens, and an admin of the tenant `acme`.
struct Admin {
    gateway: TestGateway,
    issuer: Issuer,
    signing: SigningKey,
    key: String,
}

impl Admin {
    async fn new(auth: AuthConfig) -> Self {
        let signing = SigningKey::p256("one");
        let issuer = Issuer::start(&[&signing]).await;
        let mut oidc = issuer.config();
        oidc.algorithms = vec![signing.algorithm];
        let scopes = [Scope::Read, Scope::Write, Scope::AdminAll];
        let of_word = |scope: Scope| (scope.as_str().to_owned(), vec![scope]);
        oidc.scopes = scopes.map(of_word).into();
        let gateway = gateway(AuthConfig {
            oidc: vec![oidc],
            ..auth
        })
        .await;
        let key = key(&gateway, Access::tenant("acme"), "admin", None).await;
        Self {
            key: key.reveal(),
            gateway,
            issuer,
            signing,
        }
    }

    /// A token that was issued some seconds ago (a negative number: in the future).
    fn token(&self, tenant: &str, sub: &str, age_s: i64) -> String {
        let now = i64::try_from(get_current_timestamp()).unwrap();
        let claims = json!({"sub": sub, "tenant": tenant, "iat": now - age_s});
        self.signing.sign(&self.issuer.claims_with(&claims))
    }

    /// A token of `ann` of the tenant `acme` with rights over every tenant.
    fn token_of_all(&self) -> String {
        let now = i64::try_from(get_current_timestamp()).unwrap();
        let claims =
            json!({"sub": "ann", "tenant": "acme", "iat": now - 5, "scope": "read admin:all"});
        self.signing.sign(&self.issuer.claims_with(&claims))
    }

    async fn post(&self, key: &str, body: Value) -> Answer {
        let request = self.gateway.request("POST", OWNERS).bearer_auth(key);
        Answer::of(request.json(&body).send().await.unwrap()).await
    }

    async fn change(&self, owner: &str, change: &str) -> Value {
        let body = json!({"owner": owner, "change": change});
        let answer = self.post(&self.key, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// Changes an owner as another gateway does: only in the store.
    async fn change_elsewhere(&self, owner: &str, change: OwnerChange) {
        let entry = NewAuditEntry {
            tenant_id: Some("acme".into()),
            actor: AuditActor {
                kind: AuditActorKind::Operator,
                id: None,
            },
            action: AuditAction::OwnerRefused,
            target: AuditTarget {
                kind: AuditTargetKind::Owner,
                id: owner.into(),
            },
            outcome: AuditOutcome::Done,
            address: None,
            request_id: None,
            details: serde_json::Map::new(),
            keep_days: 1,
        };
        let keep = TimeDelta::hours(1);
        let owners = &self.gateway.keys;
        let changed = owners.change_owner("acme", owner, change, Reach::Tenant, keep, &entry);
        assert_eq!(changed.await.unwrap(), ChangedOwner::Done);
    }

    async fn status(&self, credential: &str) -> u16 {
        self.gateway.bearer(LIST, credential).await.status.as_u16()
    }
}

#[tokio::test]
async fn ended_sign_ins_are_refused_and_their_streams_end() {
    let admin = Admin::new(config()).await;
    let gateway = &admin.gateway;
    gateway.store.add("c", "acme");
    let old = admin.token("acme", "ann", 5);
    let cookie = open(gateway, &old).await;
    let owned = key(gateway, Access::owner("acme", "ann"), "read", None).await;
    let mut streams = Vec::new();
    for (name, value) in [
        ("authorization", format!("Bearer {old}")),
        ("cookie", cookie.clone()),
    ] {
        let path = "/conversation-list/stream";
        let request = gateway.request("GET", path).header(name, value);
        streams.push(Sse::of(request.send().await.unwrap()));
    }
    let ended = admin.change("ann", "end_sessions").await;
    assert_eq!(
        (&ended["owner"], &ended["is_refused"]),
        (&json!("ann"), &json!(false))
    );
    assert!(ended["ended_at"].is_string());
    // This gateway refuses at once.
    assert_unauthenticated(&gateway.bearer(LIST, &old).await, "Sign in again");
    let by_cookie = gateway.with_header(LIST, "cookie", &cookie).await;
    assert_unauthenticated(&by_cookie, "has ended");
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
    // A key is no sign-in, and other people of the name or the tenant are not concerned.
    assert_eq!(admin.status(&owned.reveal()).await, 200);
    for (tenant, sub) in [("acme", "bob"), ("umbrella", "ann")] {
        assert_eq!(admin.status(&admin.token(tenant, sub, 5)).await, 200);
    }
    let new = admin.token("acme", "ann", -2);
    assert_eq!(admin.status(&new).await, 200);
    // A token without the time of its issue may be as old as a token can be.
    let claims = json!({"iat": null});
    let without = admin.signing.sign(&admin.issuer.claims_with(&claims));
    assert_eq!(admin.status(&without).await, 401);
}

#[tokio::test]
async fn a_refused_person_gets_in_with_nothing_until_allowed() {
    let admin = Admin::new(config()).await;
    let gateway = &admin.gateway;
    let owned = key(gateway, Access::owner("acme", "ann"), "read", None)
        .await
        .reveal();
    let old = admin.token("acme", "ann", 5);
    let cookie = open(gateway, &old).await;
    assert_eq!(admin.status(&owned).await, 200);
    let refused = admin.change("ann", "refuse").await;
    assert_eq!(refused["is_refused"], true);
    let new = admin.token("acme", "ann", -2);
    for credential in [&owned, &old, &new] {
        let answer = gateway.bearer(LIST, credential).await;
        answer.assert_problem(403, "owner_refused");
    }
    let answer = gateway.with_header(LIST, "cookie", &cookie).await;
    answer.assert_problem(403, "owner_refused");
    let answer = gateway.bearer(("POST", SESSION), &new).await;
    answer.assert_problem(403, "owner_refused");
    assert_eq!(admin.status(&admin.token("umbrella", "ann", 5)).await, 200);

    let listed = gateway.bearer(("GET", OWNERS), &admin.key).await.json();
    assert_eq!(listed, json!({"tenant": "acme", "owners": [refused]}));
    admin.change("ann", "allow").await;
    for (credential, expected) in [(&owned, 200), (&new, 200), (&old, 401)] {
        assert_eq!(admin.status(credential).await, expected);
    }
    let entries = gateway
        .keys
        .audit_entries(&AuditQuery::default())
        .await
        .unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.action.as_str(), entry.target_id.as_str()))
        .collect();
    for action in ["owner_refused", "owner_allowed"] {
        assert!(told.contains(&(action, "ann")), "{told:?}");
    }
    assert!(told.contains(&("owners_listed", "acme")), "{told:?}");
}

#[tokio::test]
async fn a_session_of_an_ended_token_has_ended() {
    let admin = Admin::new(AuthConfig {
        key_cache: Duration::from_mins(1),
        ..config()
    })
    .await;
    let old = admin.token("acme", "ann", 5);
    assert_eq!(admin.status(&old).await, 200);
    admin
        .change_elsewhere("ann", OwnerChange::EndSessions)
        .await;
    assert_eq!(admin.status(&old).await, 200, "from memory");
    let cookie = open(&admin.gateway, &old).await;
    let answer = admin.gateway.with_header(LIST, "cookie", &cookie).await;
    assert_unauthenticated(&answer, "has ended");
}

#[tokio::test]
async fn a_change_by_another_gateway_reaches_tokens_soon() {
    let admin = Admin::new(config()).await;
    let ann = admin.token("acme", "ann", 5);
    assert_eq!(admin.status(&ann).await, 200);
    admin.change_elsewhere("ann", OwnerChange::Refuse).await;
    eventually("the token is refused", || async {
        admin.status(&ann).await == 403
    })
    .await;
}
