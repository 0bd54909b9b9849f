//! API keys and browser sessions.

use chrono::{SubsecRound, TimeDelta, Utc};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{
    Access, AuditQuery, AuditTrail, KeyKind, KeyMaker, Keys, Missing, NewKey, SessionsOf,
    StoreError,
};

use super::{Backend, fixture::operator_entry};

fn key(id: &str, tenant: &str) -> NewKey {
    NewKey {
        id: id.into(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: vec![0, 1, 255],
        access: Access::tenant(tenant),
        scopes: "read write".into(),
        name: "the phone's".into(),
        made_by: KeyMaker::default(),
        expires_at: None,
        signed_in_at: None,
    }
}

fn session(id: &str, parent: Option<&str>) -> NewKey {
    let expires_at = Some(Utc::now() + TimeDelta::hours(1));
    NewKey {
        kind: KeyKind::Session,
        parent_id: parent.map(Into::into),
        expires_at,
        ..key(id, "t")
    }
}

pub async fn a_key_is_found_as_it_was_made(backend: &impl Backend) {
    let store = backend.open().await;
    let end = (Utc::now() + TimeDelta::days(90)).trunc_subsecs(3);
    let new = NewKey {
        access: Access::owner("t", "ann"),
        expires_at: Some(end),
        ..key("k", "")
    };
    store.create_key(new.clone(), None).await.unwrap();
    let found = backend.open().await.find_key("k").await.unwrap().unwrap();
    assert_eq!(
        (found.id.as_str(), found.kind, &found.secret_hash),
        ("k", KeyKind::Key, &new.secret_hash)
    );
    assert_eq!(
        (&found.access, &found.scopes, &found.name),
        (&new.access, &new.scopes, &new.name)
    );
    assert_eq!(
        (found.expires_at, found.revoked_at, found.last_used_at),
        (Some(end), None, None)
    );
    assert!((Utc::now() - found.created_at).num_seconds() < 60);
    assert!(found.is_valid_at(Utc::now()) && !found.is_valid_at(end));
    assert_eq!(store.find_key("K").await.unwrap(), None);
}

pub async fn an_id_is_given_once(backend: &impl Backend) {
    let store = backend.open().await;
    store.create_key(key("k", "t"), None).await.unwrap();
    let taken = store.create_key(key("k", "other"), None).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(
        store.find_key("k").await.unwrap().unwrap().access,
        Access::tenant("t")
    );
    let orphan = store.create_key(session("s", Some("unknown")), None).await;
    assert!(
        matches!(
            orphan,
            Err(StoreError::NotFound {
                what: Missing::Key,
                ..
            })
        ),
        "{orphan:?}"
    );
}

pub async fn a_revoked_key_takes_its_sessions_along(backend: &impl Backend) {
    let store = backend.open().await;
    store.create_key(key("k", "t"), None).await.unwrap();
    for (id, parent) in [("s1", Some("k")), ("s2", Some("k")), ("s3", None)] {
        store.create_key(session(id, parent), None).await.unwrap();
    }
    let is_valid = async |id: &str| {
        store
            .find_key(id)
            .await
            .unwrap()
            .unwrap()
            .is_valid_at(Utc::now())
    };
    assert!(store.revoke_key("s1", None).await.unwrap());
    assert!(!is_valid("s1").await && is_valid("s2").await && is_valid("k").await);
    assert!(store.revoke_key("k", None).await.unwrap());
    let first = store.find_key("k").await.unwrap().unwrap().revoked_at;
    assert!(!is_valid("k").await && !is_valid("s2").await && is_valid("s3").await);
    assert!(store.revoke_key("k", None).await.unwrap(), "repeated");
    assert_eq!(
        store.find_key("k").await.unwrap().unwrap().revoked_at,
        first
    );
    assert!(!store.revoke_key("unknown", None).await.unwrap());
    // A session that is opened at the same moment is not valid either.
    store
        .create_key(session("s4", Some("k")), None)
        .await
        .unwrap();
    assert!(!is_valid("s4").await);
}

pub async fn a_revoked_key_takes_the_keys_that_it_made_along(backend: &impl Backend) {
    let store = backend.open().await;
    // a made b and d, b made c; x is of another maker.
    for (id, maker) in [
        ("a", None),
        ("b", Some("a")),
        ("c", Some("b")),
        ("d", Some("a")),
        ("x", None),
    ] {
        let made_by = KeyMaker {
            key: maker.map(Into::into),
            subject: None,
        };
        let new = NewKey {
            made_by,
            ..key(id, "t")
        };
        store.create_key(new.clone(), None).await.unwrap();
        assert_eq!(
            store.find_key(id).await.unwrap().unwrap().made_by,
            new.made_by
        );
    }
    let entry = operator_entry(None, AuditAction::KeyRevoked, AuditTargetKind::Key, "a");
    // A call has a limit, and a further call continues.
    assert_eq!(
        store.revoke_made_keys("a", 3, &entry).await.unwrap(),
        ["a", "b", "c"]
    );
    assert_eq!(store.revoke_made_keys("a", 3, &entry).await.unwrap(), ["d"]);
    assert!(
        store
            .revoke_made_keys("a", 3, &entry)
            .await
            .unwrap()
            .is_empty()
    );
    let is_valid = async |id: &str| {
        let found = store.find_key(id).await.unwrap().unwrap();
        found.is_valid_at(Utc::now())
    };
    for id in ["a", "b", "c", "d"] {
        assert!(!is_valid(id).await, "{id}");
    }
    assert!(is_valid("x").await);
    let entries = store.audit_entries(&AuditQuery::default()).await.unwrap();
    let targets: Vec<_> = entries
        .iter()
        .map(|entry| (entry.target_id.as_str(), entry.tenant_id.as_deref()))
        .collect();
    assert_eq!(targets, ["a", "b", "c", "d"].map(|id| (id, Some("t"))));
}

pub async fn lists_are_paged_and_by_tenant(backend: &impl Backend) {
    let store = backend.open().await;
    for (id, tenant) in [("a", "t"), ("b", "u"), ("c", "t"), ("d", "t")] {
        store.create_key(key(id, tenant), None).await.unwrap();
    }
    store.create_key(session("bb", None), None).await.unwrap();
    let ids = async |tenant, after, limit| {
        let keys = store.list_keys(tenant, after, limit).await.unwrap();
        keys.into_iter()
            .map(|key| key.id)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(ids(None, None, 10).await, "a b c d", "no sessions");
    assert_eq!(ids(None, None, 2).await, "a b");
    assert_eq!(ids(None, Some("b"), 2).await, "c d");
    assert_eq!(ids(Some("t"), None, 2).await, "a c");
    assert_eq!(ids(Some("t"), Some("c"), 2).await, "d");
    assert_eq!(ids(Some("nobody"), None, 2).await, "");
}

pub async fn use_is_noted_coarsely(backend: &impl Backend) {
    let store = backend.open().await;
    store.create_key(key("k", "t"), None).await.unwrap();
    let last_used = async || store.find_key("k").await.unwrap().unwrap().last_used_at;
    store
        .touch_key("k", Utc::now() - TimeDelta::minutes(1))
        .await
        .unwrap();
    let first = last_used().await.unwrap();
    store
        .touch_key("k", first - TimeDelta::minutes(1))
        .await
        .unwrap();
    assert_eq!(last_used().await, Some(first), "noted a moment ago");
    store
        .touch_key("k", Utc::now() + TimeDelta::minutes(1))
        .await
        .unwrap();
    assert!(last_used().await >= Some(first));
    store.touch_key("unknown", Utc::now()).await.unwrap();
}

pub async fn sessions_that_ended_are_removed(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_key(
            NewKey {
                expires_at: Some(Utc::now() - TimeDelta::hours(1)),
                ..key("k", "t")
            },
            None,
        )
        .await
        .unwrap();
    for number in 0..5 {
        let expires_at = Some(Utc::now() - TimeDelta::minutes(number));
        store
            .create_key(
                NewKey {
                    expires_at,
                    ..session(&format!("s{number}"), Some("k"))
                },
                None,
            )
            .await
            .unwrap();
    }
    store.create_key(session("open", None), None).await.unwrap();
    assert_eq!(store.remove_ended_sessions(Utc::now(), 3).await.unwrap(), 3);
    assert_eq!(
        store.find_key("s4").await.unwrap(),
        None,
        "the oldest first"
    );
    assert_eq!(store.remove_ended_sessions(Utc::now(), 3).await.unwrap(), 2);
    assert_eq!(store.remove_ended_sessions(Utc::now(), 3).await.unwrap(), 0);
    assert!(
        store.find_key("k").await.unwrap().is_some()
            && store.find_key("open").await.unwrap().is_some()
    );
}

pub async fn the_oldest_sessions_end_first(backend: &impl Backend) {
    let store = backend.open().await;
    for id in ["k", "other"] {
        store.create_key(key(id, "acme"), None).await.unwrap();
    }
    for number in 0..5 {
        for parent in ["k", "other"] {
            let id = format!("{parent}{number}");
            store
                .create_key(session(&id, Some(parent)), None)
                .await
                .unwrap();
        }
        let id = format!("token{number}");
        let new = NewKey {
            access: Access::owner("acme", "ann"),
            ..session(&id, None)
        };
        store.create_key(new, None).await.unwrap();
    }
    let left = async |prefix: &str| {
        let mut left = String::new();
        for number in 0..5 {
            if store
                .find_key(&format!("{prefix}{number}"))
                .await
                .unwrap()
                .is_some()
            {
                left.push_str(&number.to_string());
            }
        }
        left
    };
    let of = SessionsOf::Key("k");
    assert_eq!(store.end_oldest_sessions(of, 2, 1).await.unwrap(), 1);
    assert_eq!(store.end_oldest_sessions(of, 2, 10).await.unwrap(), 2);
    assert_eq!(store.end_oldest_sessions(of, 2, 10).await.unwrap(), 0);
    assert_eq!(left("k").await, "34");
    assert_eq!(left("other").await, "01234");
    assert!(store.find_key("k").await.unwrap().is_some());
    let owner = Access::owner("acme", "ann");
    assert_eq!(
        store
            .end_oldest_sessions(SessionsOf::Owner(&owner), 3, 10)
            .await
            .unwrap(),
        2
    );
    assert_eq!(left("token").await, "234");
    let nobody = Access::owner(&owner.tenant_id, "nobody");
    assert_eq!(
        store
            .end_oldest_sessions(SessionsOf::Owner(&nobody), 0, 10)
            .await
            .unwrap(),
        0
    );
}
