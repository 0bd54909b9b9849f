//! The audit trail, and what is known of tenants.

use chrono::{TimeDelta, Utc};
use everturn_proto::{
    turn::ResolveApproval,
    words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind},
};
use everturn_store::{
    Access, AuditActor, AuditEntry, AuditQuery, AuditTarget, AuditTrail, Conversations, KeyKind,
    KeyMaker, Keys, NewAnswer, NewAuditEntry, NewConversation, NewKey, NotedAnswer, OutsideTools,
    TenantUsageCursor, Tenants, TenantsUsageQuery, UsageBy, UsageCursor,
};
use serde_json::json;

use super::{
    Backend,
    fixture::{Turn, tenant},
};

fn entry(tenant: Option<&str>, action: AuditAction, target: &str) -> NewAuditEntry {
    let details = json!({"name": "the phone's"});
    NewAuditEntry {
        tenant_id: tenant.map(Into::into),
        actor: AuditActor {
            kind: AuditActorKind::Key,
            id: Some("0011223344556677".into()),
        },
        action,
        target: AuditTarget {
            kind: AuditTargetKind::Key,
            id: target.into(),
        },
        outcome: AuditOutcome::Done,
        address: Some("192.0.2.1".into()),
        request_id: Some("r".into()),
        details: details.as_object().unwrap().clone(),
        keep_days: 400,
    }
}

fn created(target: &str) -> NewAuditEntry {
    entry(Some("t"), AuditAction::KeyCreated, target)
}

async fn all(store: &impl AuditTrail) -> Vec<AuditEntry> {
    store.audit_entries(&AuditQuery::default()).await.unwrap()
}

/// The targets of the entries that a query finds.
async fn found(store: &impl AuditTrail, query: AuditQuery) -> Vec<String> {
    let entries = store.audit_entries(&query).await.unwrap();
    entries.into_iter().map(|entry| entry.target_id).collect()
}

pub async fn entries_are_read_as_they_were_written(backend: &impl Backend) {
    let store = backend.open().await;
    let newer = AuditAction::from("a_word_of_a_newer_version");
    let new = entry(Some("t"), newer.clone(), "k");
    store.append_audit(&new).await.unwrap();
    let large = "é".repeat(NewAuditEntry::MAX_DETAIL_BYTES);
    let hostile = NewAuditEntry {
        tenant_id: None,
        request_id: Some(format!("a\0{large}")),
        details: json!({ "text": large }).as_object().unwrap().clone(),
        ..new.clone()
    };
    store.append_audit(&hostile).await.unwrap();
    let [first, second] = all(&backend.open().await).await.try_into().unwrap();
    assert_eq!((first.id, second.id), (1, 2));
    assert!((Utc::now() - first.at).num_seconds() < 60);
    assert_eq!(
        (&first.actor_kind, &first.actor_id, &first.action),
        (&new.actor.kind, &new.actor.id, &newer)
    );
    assert_eq!(
        (&first.target_kind, &first.target_id, &first.outcome),
        (&new.target.kind, &new.target.id, &new.outcome)
    );
    assert_eq!(
        (&first.tenant_id, &first.address, &first.request_id),
        (&new.tenant_id, &new.address, &new.request_id)
    );
    assert_eq!(first.details.0, new.details);
    assert!(second.tenant_id.is_none() && second.request_id.is_some_and(|id| id.len() <= 260));
    assert_eq!(second.details.0["left_out"], "too large");
}

pub async fn entries_are_found_by_what_is_asked_for(backend: &impl Backend) {
    let store = backend.open().await;
    let begun = Utc::now() - TimeDelta::seconds(1);
    for (tenant, action, target) in [
        (Some("t"), AuditAction::KeyCreated, "a"),
        (Some("u"), AuditAction::KeyCreated, "b"),
        (None, AuditAction::CredentialRefused, "c"),
        (Some("t"), AuditAction::KeyRevoked, "d"),
    ] {
        let new = entry(tenant, action, target);
        store.append_audit(&new).await.unwrap();
    }
    let query = AuditQuery::default;
    let of_tenant = AuditQuery {
        tenant_id: Some("t".into()),
        ..query()
    };
    let of_action = AuditQuery {
        action: Some(AuditAction::KeyCreated),
        ..query()
    };
    let of_nobody = AuditQuery {
        actor: Some("nobody".into()),
        ..query()
    };
    let since = |since| AuditQuery {
        since: Some(since),
        ..query()
    };
    let until = |until| AuditQuery {
        until: Some(until),
        ..query()
    };
    let page = AuditQuery {
        after: 1,
        limit: 2,
        ..query()
    };
    for (query, expected) in [
        (query(), &["a", "b", "c", "d"][..]),
        (of_tenant, &["a", "d"]),
        (of_action, &["a", "b"]),
        (of_nobody, &[]),
        (page, &["b", "c"]),
        (since(begun), &["a", "b", "c", "d"]),
        (since(Utc::now() + TimeDelta::hours(2)), &[]),
        (until(begun), &[]),
        (
            until(Utc::now() + TimeDelta::hours(2)),
            &["a", "b", "c", "d"],
        ),
    ] {
        let what = format!("{query:?}");
        assert_eq!(found(&store, query).await, expected, "{what}");
    }
}

/// Whoever may write to the database, and is not its owner, changes no entry.
pub async fn an_entry_stays_as_it_was_written(backend: &impl Backend) {
    let store = backend.open().await;
    store.append_audit(&created("a")).await.unwrap();
    store.append_audit(&created("b")).await.unwrap();
    let before = all(&store).await;
    for text in [
        "UPDATE audit_events SET actor_id = 'somebody else'",
        "UPDATE audit_events SET keep_until = at",
        "DELETE FROM audit_events WHERE target_id = 'a'",
        "INSERT INTO audit_events (id, at, keep_until, actor_kind, actor_id, action, target_kind, target_id, outcome, \
         address, request_id, details) SELECT id, at, keep_until, actor_kind, 'somebody else', action, target_kind, \
         target_id, outcome, address, request_id, details FROM audit_events WHERE target_id = 'a' \
         ON CONFLICT (id) DO UPDATE SET actor_id = 'somebody else'",
    ] {
        // PostgreSQL gives an entry that is inserted another number, and so adds one.
        let _refused_or_added = backend.refused(text).await;
        let after = all(&store).await;
        assert_eq!(after[..2], before, "{text}");
    }
    let refused = backend.refused("DELETE FROM audit_events").await;
    assert!(refused.unwrap().contains("stays as it was written"));
}

/// Inserts an entry as old as it says that it is. PostgreSQL gives it the next number, whatever `$id` is.
macro_rules! old_entry {
    ($id:literal, $at:literal, $keep_until:literal, $target:literal) => {
        concat!(
            "INSERT INTO audit_events (id, at, keep_until, actor_kind, actor_id, action, target_kind, target_id, outcome, \
             address, request_id, details) VALUES (",
            $id,
            ", '",
            $at,
            "', '",
            $keep_until,
            "', 'key', 'k', 'key_created', 'key', '",
            $target,
            "', 'done', '', '', '{}')"
        )
    };
}

pub async fn only_entries_whose_time_is_over_are_removed(backend: &impl Backend) {
    let store = backend.open().await;
    for text in [
        old_entry!(
            1,
            "2001-01-01T00:00:00+00:00",
            "2002-01-01T00:00:00+00:00",
            "over"
        ),
        old_entry!(
            2,
            "2001-01-01T00:00:00+00:00",
            "2999-01-01T00:00:00+00:00",
            "promised"
        ),
    ] {
        backend.run(text).await;
    }
    let new = NewAuditEntry {
        keep_days: 0,
        ..created("newest")
    };
    store.append_audit(&created("new")).await.unwrap();
    store.append_audit(&new).await.unwrap();
    let long_ago = "2000-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(store.prune_audit(long_ago, 100).await.unwrap(), 0);
    let tomorrow = Utc::now() + TimeDelta::days(1);
    assert_eq!(store.prune_audit(tomorrow, 100).await.unwrap(), 1);
    let left = found(&store, AuditQuery::default()).await;
    assert_eq!(left, ["promised", "new", "newest"]);
}

/// Two writers read the clock, and commit in the other order.
pub async fn entries_are_found_whatever_the_order_of_their_times(backend: &impl Backend) {
    let store = backend.open().await;
    for text in [
        old_entry!(
            1,
            "2001-01-01T09:00:00+00:00",
            "2999-01-01T00:00:00+00:00",
            "1"
        ),
        old_entry!(
            2,
            "2001-01-01T12:00:02+00:00",
            "2999-01-01T00:00:00+00:00",
            "2"
        ),
        old_entry!(
            3,
            "2001-01-01T12:00:01+00:00",
            "2999-01-01T00:00:00+00:00",
            "3"
        ),
        old_entry!(
            4,
            "2001-01-01T12:00:03+00:00",
            "2999-01-01T00:00:00+00:00",
            "4"
        ),
    ] {
        backend.run(text).await;
    }
    for (since, expected) in [
        (None, &["1", "2", "3", "4"][..]),
        (Some("2001-01-01T09:30:00Z"), &["2", "3", "4"]),
        (Some("2001-01-01T12:00:00Z"), &["2", "3", "4"]),
        (Some("2001-01-01T12:00:02Z"), &["2", "4"]),
        (Some("2001-01-01T14:00:00Z"), &[]),
    ] {
        let query = AuditQuery {
            since: since.map(|since| since.parse().unwrap()),
            ..AuditQuery::default()
        };
        assert_eq!(found(&store, query).await, expected, "{since:?}");
    }
}

/// Writers append at once, some of them in long transactions; whoever reads on from the last number gets all.
pub async fn whoever_reads_on_misses_no_entry(backend: &impl Backend) {
    const WRITERS: usize = 8;
    const ENTRIES: usize = 10;
    let store = backend.open().await;
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..ENTRIES {
                let id = format!("{writer}-{number}");
                let entry = created(&id);
                let new = key(&id, "t");
                store.create_key(new, Some(&entry)).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut seen = Vec::new();
    while seen.len() < WRITERS * ENTRIES {
        let after = u64::try_from(seen.len()).unwrap();
        let query = AuditQuery {
            after,
            ..AuditQuery::default()
        };
        for entry in store.audit_entries(&query).await.unwrap() {
            assert_eq!(entry.id, u64::try_from(seen.len()).unwrap() + 1);
            seen.push(entry.target_id);
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), WRITERS * ENTRIES);
}

fn key(id: &str, tenant: &str) -> NewKey {
    NewKey {
        id: id.into(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: vec![1],
        access: Access::tenant(tenant),
        scopes: "read".into(),
        name: String::new(),
        made_by: KeyMaker::default(),
        expires_at: None,
        signed_in_at: None,
    }
}

pub async fn a_change_and_its_entry_are_there_together(backend: &impl Backend) {
    let store = backend.open().await;
    let new = || key("k", "t");
    store.create_key(new(), Some(&created("k"))).await.unwrap();
    let taken = store.create_key(new(), Some(&created("taken"))).await;
    assert!(taken.is_err());
    let revoked = |target| entry(Some("t"), AuditAction::KeyRevoked, target);
    for (id, is_there) in [("k", true), ("unknown", false)] {
        let answer = store.revoke_key(id, Some(&revoked(id))).await.unwrap();
        assert_eq!(answer, is_there);
    }
    let denied = ResolveApproval {
        decision: "deny".into(),
        ..ResolveApproval::default()
    };
    let answer = NewAnswer {
        id: "a",
        answered_by: Some("ann"),
        is_person: true,
        answer: &denied,
    };
    let answered = entry(Some("t"), AuditAction::ApprovalAnswered, "exec");
    let access = tenant();
    let noted = store.note_answer(&access, "none", "exec", answer, Some(&answered));
    assert_eq!(noted.await.unwrap(), NotedAnswer::TooMany);
    let actions: Vec<_> = all(&store)
        .await
        .into_iter()
        .map(|entry| (entry.action, entry.target_id))
        .collect();
    assert_eq!(
        actions,
        [
            (AuditAction::KeyCreated, "k".to_owned()),
            (AuditAction::KeyRevoked, "k".to_owned())
        ],
        "nothing is told that was not done"
    );
}

pub async fn an_entry_outlives_its_conversation(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let deleted = |target: &str| NewAuditEntry {
        target: AuditTarget {
            kind: AuditTargetKind::Conversation,
            id: target.into(),
        },
        ..entry(Some("t"), AuditAction::ConversationDeleted, target)
    };
    let access = tenant();
    for (id, is_there) in [("c", true), ("c", false), ("unknown", false)] {
        let entry = deleted(id);
        let gone = turn.store.delete_conversation(&access, id, Some(&entry));
        assert_eq!(gone.await.unwrap(), is_there);
    }
    let gone = turn.store.conversation(&tenant(), "c").await.unwrap();
    assert!(gone.is_none());
    let left = found(&turn.store, AuditQuery::default()).await;
    assert_eq!(left, ["c"]);
}

pub async fn tenants_are_listed_with_what_they_have(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let store = &turn.store;
    for (id, tenant) in [("k1", "acme"), ("k2", "acme"), ("k3", "umbrella")] {
        store.create_key(key(id, tenant), None).await.unwrap();
    }
    store.revoke_key("k2", None).await.unwrap();
    for id in ["d", "e"] {
        let new = NewConversation {
            name: id.into(),
            access: Access::owner("umbrella", "ann"),
            agent: "default".into(),
            title: None,
            model: None,
            metadata: std::collections::BTreeMap::new(),
        };
        store.create_conversation(new).await.unwrap();
    }
    let own = tenant().tenant_id;
    let listed = store.tenants(None, 10).await.unwrap();
    let numbers = |id: &str| {
        let found = listed.iter().find(|tenant| tenant.tenant_id == id).unwrap();
        (found.valid_keys, found.conversations, found.running_turns)
    };
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert_eq!(numbers("acme"), (1, 0, 0));
    assert_eq!(numbers("umbrella"), (1, 2, 0));
    assert_eq!(numbers(&own), (0, 1, 1));
    assert!(
        listed
            .iter()
            .any(|tenant| tenant.last_activity_at.is_none())
    );
    let mut paged = Vec::new();
    while let [next] = &store
        .tenants(paged.last().map(String::as_str), 1)
        .await
        .unwrap()[..]
    {
        paged.push(next.tenant_id.clone());
    }
    let ids: Vec<_> = listed.iter().map(|tenant| &tenant.tenant_id).collect();
    assert!(paged.iter().eq(ids) && paged.is_sorted());
    assert_eq!(store.tenant("umbrella").await.unwrap().conversations, 2);
    assert_eq!(store.tenant("unknown").await.unwrap().conversations, 0);
}

pub async fn tenants_are_told_what_they_took(backend: &impl Backend) {
    let store = backend.open().await;
    backend
        .run("INSERT INTO usage_days VALUES ('a', '2026-11-29', 'p/m', 'x', 1, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0), \
              ('a', '2026-11-30', 'p/m', 'x', 1, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0), \
              ('a', '2026-11-30', 'p/m', 'y', 2, 4, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0), \
              ('b', '2026-11-30', 'p/m', 'x', 1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0)")
        .await;
    let query = |tenant: Option<&str>, from: &str| TenantsUsageQuery {
        tenant_id: tenant.map(Into::into),
        from: from.into(),
        to: "2026-11-30".into(),
        limit: 10,
        ..TenantsUsageQuery::default()
    };
    let calls = async |query: TenantsUsageQuery| {
        let rows = store.usage_of_tenants(&query).await.unwrap();
        let calls = rows
            .iter()
            .map(|row| (row.tenant_id.clone(), row.day.calls));
        calls.collect::<Vec<_>>()
    };
    let rows = |rows: &[(&str, u64)]| {
        let rows = rows
            .iter()
            .map(|(tenant, calls)| ((*tenant).to_owned(), *calls));
        rows.collect::<Vec<_>>()
    };
    let all = rows(&[("a", 1), ("a", 5), ("b", 7)]);
    assert_eq!(calls(query(None, "")).await, all);
    assert_eq!(calls(query(Some("b"), "")).await, all[2..]);
    assert_eq!(calls(query(Some("a"), "2026-11-30")).await, all[1..2]);
    let after = TenantUsageCursor {
        tenant_id: "a".into(),
        of_tenant: UsageCursor {
            day: "2026-11-30".into(),
            name: "p/m".into(),
        },
    };
    let by_agent = TenantsUsageQuery {
        by: UsageBy::Agent,
        ..query(Some("a"), "2026-11-30")
    };
    assert_eq!(calls(by_agent).await, rows(&[("a", 1), ("a", 4)]));
    let of_agent = TenantsUsageQuery {
        agent: Some("y".into()),
        ..query(None, "")
    };
    assert_eq!(calls(of_agent).await, rows(&[("a", 4)]));
    let next = TenantsUsageQuery {
        after: Some(after),
        ..query(None, "")
    };
    assert_eq!(calls(next).await, all[2..]);
}
