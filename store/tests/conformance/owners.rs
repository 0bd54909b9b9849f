//! Owners with refused credentials.

use chrono::{TimeDelta, Utc};
use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{
    Access, AuditActor, AuditQuery, AuditTarget, AuditTrail, ChangedOwner, KeyKind, KeyMaker, Keys,
    NewAuditEntry, NewKey, OwnerChange, OwnerRefusal, OwnerState, Owners, Reach, RefusedOwner,
};

use super::Backend;

const KEEP: TimeDelta = TimeDelta::hours(1);

fn entry(owner: &str) -> NewAuditEntry {
    NewAuditEntry {
        tenant_id: Some("t".into()),
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
    }
}

/// Changes an owner of the tenant `t` by an admin of the tenant, and returns whether the store made the change.
async fn change(store: &impl Owners, owner: &str, change: OwnerChange, keep: TimeDelta) -> bool {
    let entry = entry(owner);
    let by = Reach::Tenant;
    let changed = store.change_owner("t", owner, change, by, keep, &entry);
    changed.await.unwrap() == ChangedOwner::Done
}

/// Changes `ann` of the tenant `t` by an admin of every tenant or of the tenant.
async fn change_by(store: &impl Owners, by: Reach, change: OwnerChange) -> ChangedOwner {
    let entry = entry("ann");
    let changed = store.change_owner("t", "ann", change, by, KEEP, &entry);
    changed.await.unwrap()
}

async fn state(store: &impl Owners, tenant: &str, owner: &str) -> OwnerState {
    store.owner_state(tenant, owner).await.unwrap()
}

pub async fn an_owner_is_refused_until_allowed(backend: &impl Backend) {
    let store = backend.open().await;
    assert_eq!(state(&store, "t", "ann").await, OwnerState::default());
    let begun = Utc::now() - TimeDelta::milliseconds(1);
    assert!(change(&store, "ann", OwnerChange::Refuse, KEEP).await);
    let refused = state(&backend.open().await, "t", "ann").await;
    assert!(refused.is_refused && refused.ended_at.unwrap() > begun);
    for (tenant, owner) in [("u", "ann"), ("t", "bob")] {
        assert_eq!(state(&store, tenant, owner).await, OwnerState::default());
    }
    // The end of the sessions does not allow a refused owner.
    assert!(change(&store, "ann", OwnerChange::EndSessions, KEEP).await);
    let ended = state(&store, "t", "ann").await;
    assert!(ended.is_refused && ended.ended_at >= refused.ended_at);
    for _ in 0..2 {
        assert!(change(&store, "ann", OwnerChange::Allow, KEEP).await);
        let allowed = OwnerState {
            is_refused: false,
            ..ended
        };
        assert_eq!(state(&store, "t", "ann").await, allowed);
    }
    assert!(change(&store, "bob", OwnerChange::Allow, KEEP).await);
    assert_eq!(state(&store, "t", "bob").await, OwnerState::default());
    let listed = store.refused_owners("t").await.unwrap();
    let owners: Vec<_> = listed.iter().map(|owner| owner.owner_id.as_str()).collect();
    assert_eq!(owners, ["ann"]);
    assert!(store.refused_owners("u").await.unwrap().is_empty());
    let entries = store.audit_entries(&AuditQuery::default()).await.unwrap();
    assert_eq!(entries.len(), 5, "an entry for each change");
}

pub async fn only_an_admin_of_all_refuses_credentials_with_rights_over_all(backend: &impl Backend) {
    let store = backend.open().await;
    let before = Utc::now() - TimeDelta::minutes(1);
    let refusals = async || {
        let state = state(&store, "t", "ann").await;
        [Reach::Tenant, Reach::All].map(|reach| state.refusal(reach, Some(before)))
    };
    let (ended, refused) = (Some(OwnerRefusal::Ended), Some(OwnerRefusal::Refused));
    for (by, change, outcome, expected) in [
        (
            Reach::Tenant,
            OwnerChange::EndSessions,
            ChangedOwner::Done,
            [ended, None],
        ),
        (
            Reach::Tenant,
            OwnerChange::Refuse,
            ChangedOwner::Done,
            [refused, None],
        ),
        (
            Reach::All,
            OwnerChange::EndSessions,
            ChangedOwner::Done,
            [refused, ended],
        ),
        (
            Reach::Tenant,
            OwnerChange::Allow,
            ChangedOwner::Done,
            [ended, ended],
        ),
        (
            Reach::All,
            OwnerChange::Refuse,
            ChangedOwner::Done,
            [refused, refused],
        ),
        (
            Reach::Tenant,
            OwnerChange::Refuse,
            ChangedOwner::Done,
            [refused, refused],
        ),
        (
            Reach::Tenant,
            OwnerChange::Allow,
            ChangedOwner::RefusedByAll,
            [refused, refused],
        ),
        (
            Reach::All,
            OwnerChange::Allow,
            ChangedOwner::Done,
            [ended, ended],
        ),
    ] {
        assert_eq!(
            change_by(&store, by, change).await,
            outcome,
            "{by:?} {change:?}"
        );
        assert_eq!(refusals().await, expected, "{by:?} {change:?}");
    }
    let entries = store.audit_entries(&AuditQuery::default()).await.unwrap();
    assert_eq!(entries.len(), 7, "a change without effect has no entry");
}

pub async fn sessions_know_their_sign_in_and_the_state_of_their_owner(backend: &impl Backend) {
    let store = backend.open().await;
    let session = |id: &str, signed_in_at| NewKey {
        id: id.into(),
        kind: KeyKind::Session,
        parent_id: None,
        secret_hash: vec![1],
        access: Access::owner("t", "ann"),
        scopes: "read".into(),
        name: String::new(),
        made_by: KeyMaker::default(),
        expires_at: Some(Utc::now() + KEEP),
        signed_in_at,
    };
    let key = NewKey {
        kind: KeyKind::Key,
        ..session("key", None)
    };
    store.create_key(key, None).await.unwrap();
    assert!(change(&store, "ann", OwnerChange::EndSessions, KEEP).await);
    // A gateway opened the session after the end, with a token from before.
    let before = Utc::now() - TimeDelta::minutes(1);
    let late = session("late", Some(before));
    store.create_key(late, None).await.unwrap();
    let after = Utc::now() + TimeDelta::minutes(1);
    let new = session("new", Some(after));
    store.create_key(new, None).await.unwrap();
    let refusal = async |id: &str| {
        let key = store.find_key(id).await.unwrap().unwrap();
        key.owner_refusal(Reach::Tenant)
    };
    assert_eq!(refusal("late").await, Some(OwnerRefusal::Ended));
    assert_eq!((refusal("new").await, refusal("key").await), (None, None));
    assert!(change(&store, "ann", OwnerChange::Refuse, KEEP).await);
    for id in ["late", "new", "key"] {
        assert_eq!(refusal(id).await, Some(OwnerRefusal::Refused));
    }
}

pub async fn refused_owners_do_not_pile_up(backend: &impl Backend) {
    let store = backend.open().await;
    for number in 0..RefusedOwner::MAX_OF_TENANT {
        let owner = format!("o{number}");
        let kept = if number == 0 { -KEEP } else { KEEP };
        assert!(change(&store, &owner, OwnerChange::EndSessions, kept).await);
    }
    // The first row was over, and a later change removed the row.
    assert_eq!(state(&store, "t", "o0").await, OwnerState::default());
    assert!(change(&store, "last", OwnerChange::Refuse, KEEP).await);
    assert!(!change(&store, "surplus", OwnerChange::Refuse, KEEP).await);
    assert_eq!(state(&store, "t", "surplus").await, OwnerState::default());
    // A known owner may change at the limit, and so may another tenant's owner.
    assert!(change(&store, "o5", OwnerChange::Refuse, -KEEP).await);
    let entry = entry("ann");
    let other = store.change_owner("u", "ann", OwnerChange::Refuse, Reach::Tenant, KEEP, &entry);
    assert_eq!(other.await.unwrap(), ChangedOwner::Done);
    assert!(
        state(&store, "t", "o5").await.is_refused,
        "kept while refused"
    );
}
