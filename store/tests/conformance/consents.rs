//! Consents of people to the use of a tool server in their name.

use std::time::Duration;

use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{
    AuditQuery, AuditTrail, ConsentOf, Consents, NewAuditEntry, NewConsentRequest,
};

use super::{Backend, fixture::operator_entry};

const MINUTE: Duration = Duration::from_mins(1);

fn of(tenant: &str, owner: &str, server: &str) -> ConsentOf {
    ConsentOf {
        tenant_id: tenant.into(),
        owner_id: owner.into(),
        server: server.into(),
    }
}

fn entry(action: AuditAction) -> NewAuditEntry {
    operator_entry(Some("t"), action, AuditTargetKind::ToolServer, "mail")
}

async fn give(store: &impl Consents, of: &ConsentOf, id: &str, sealed: &[u8]) {
    let entry = entry(AuditAction::ConsentGiven);
    store.give_consent(of, id, sealed, &entry).await.unwrap();
}

pub async fn a_consent_is_of_one_person_and_one_server(backend: &impl Backend) {
    let store = backend.open().await;
    let ann = of("t", "ann", "mail");
    give(&store, &ann, "c1", b"one").await;
    let other = backend.open().await;
    let found = other.consent(&ann).await.unwrap().unwrap();
    assert_eq!((found.id.as_str(), found.version), ("c1", 1));
    assert_eq!(found.sealed, b"one");
    for foreign in [
        of("t", "bob", "mail"),
        of("u", "ann", "mail"),
        of("t", "ann", "files"),
        of("t", "", "mail"),
    ] {
        assert_eq!(other.consent(&foreign).await.unwrap(), None, "{foreign:?}");
        let entry = entry(AuditAction::ConsentEnded);
        let ended = other.end_consent(&foreign, &entry).await.unwrap();
        assert_eq!(ended, None, "{foreign:?}");
    }
    give(&store, &of("t", "ann", "files"), "c2", b"two").await;
    let listed = store.consents_of("t", "ann").await.unwrap();
    let servers: Vec<_> = listed.iter().map(|it| it.server.as_str()).collect();
    assert_eq!(servers, ["files", "mail"]);
    assert!(store.consents_of("t", "bob").await.unwrap().is_empty());
    // A new consent takes the stead of the earlier consent.
    give(&store, &ann, "c3", b"three").await;
    assert!(
        !store
            .renew_consent(&ann, &found.tokens(), b"late")
            .await
            .unwrap()
    );
    store.lose_consent(&ann, &found.tokens()).await.unwrap();
    let entry = entry(AuditAction::ConsentEnded);
    let ended = store.end_consent(&ann, &entry).await.unwrap().unwrap();
    assert_eq!((ended.id.as_str(), ended.sealed), ("c3", b"three".to_vec()));
    assert_eq!(store.end_consent(&ann, &entry).await.unwrap(), None);
    let entries = store.audit_entries(&AuditQuery::default()).await.unwrap();
    assert_eq!(entries.len(), 4, "an entry for each change");
}

pub async fn tokens_are_renewed_by_one_process(backend: &impl Backend) {
    let store = backend.open().await;
    let ann = of("t", "ann", "mail");
    give(&store, &ann, "c1", b"one").await;
    let tokens = store.consent(&ann).await.unwrap().unwrap().tokens();
    let mut claimed = 0;
    for _ in 0..4 {
        let other = backend.open().await;
        claimed += u32::from(other.claim_renewal(&ann, &tokens, MINUTE).await.unwrap());
    }
    assert_eq!(claimed, 1);
    assert!(store.renew_consent(&ann, &tokens, b"two").await.unwrap());
    let renewed = store.consent(&ann).await.unwrap().unwrap();
    assert_eq!(
        (renewed.sealed.as_slice(), renewed.version),
        (&b"two"[..], 2)
    );
    assert_eq!(renewed.id, "c1");
    // Tokens that were renewed meanwhile are neither renewed again nor lost.
    assert!(!store.claim_renewal(&ann, &tokens, MINUTE).await.unwrap());
    assert!(!store.renew_consent(&ann, &tokens, b"late").await.unwrap());
    store.lose_consent(&ann, &tokens).await.unwrap();
    assert_eq!(store.consent(&ann).await.unwrap(), Some(renewed.clone()));
    assert!(
        store
            .claim_renewal(&ann, &renewed.tokens(), MINUTE)
            .await
            .unwrap()
    );
    store.lose_consent(&ann, &renewed.tokens()).await.unwrap();
    assert_eq!(store.consent(&ann).await.unwrap(), None);
    assert!(
        !store
            .renew_consent(&ann, &renewed.tokens(), b"x")
            .await
            .unwrap()
    );
}

pub async fn a_renewal_is_free_again_after_its_time_or_a_failure(backend: &impl Backend) {
    let store = backend.open().await;
    let ann = of("t", "ann", "mail");
    give(&store, &ann, "c1", b"one").await;
    let tokens = store.consent(&ann).await.unwrap().unwrap().tokens();
    assert!(
        store
            .claim_renewal(&ann, &tokens, Duration::ZERO)
            .await
            .unwrap()
    );
    assert!(store.claim_renewal(&ann, &tokens, MINUTE).await.unwrap());
    assert!(!store.claim_renewal(&ann, &tokens, MINUTE).await.unwrap());
    store.free_renewal(&ann, &tokens).await.unwrap();
    assert!(store.claim_renewal(&ann, &tokens, MINUTE).await.unwrap());
}

fn begun(owner: &str, state: &[u8], time: Duration) -> NewConsentRequest {
    NewConsentRequest {
        state_hash: state.to_vec(),
        of: of("t", owner, "mail"),
        sealed: b"verifier".to_vec(),
        time,
    }
}

pub async fn a_begun_consent_is_taken_once_and_within_its_time(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .begin_consent(&begun("ann", b"s1", MINUTE), 5)
        .await
        .unwrap();
    let over = begun("ann", b"s2", Duration::ZERO);
    store.begin_consent(&over, 5).await.unwrap();
    for unknown in [&b"s2"[..], b"s3", b""] {
        assert_eq!(store.begun_consent(unknown).await.unwrap(), None);
        assert_eq!(store.take_consent(unknown).await.unwrap(), None);
    }
    let seen = store.begun_consent(b"s1").await.unwrap().unwrap();
    assert_eq!(seen.of, of("t", "ann", "mail"));
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(backend.open().await.take_consent(b"s1").await.unwrap());
    }
    assert_eq!(taken, [seen]);
    assert_eq!(store.begun_consent(b"s1").await.unwrap(), None);
}

pub async fn begun_consents_do_not_pile_up(backend: &impl Backend) {
    let store = backend.open().await;
    let before = backend.row_count().await;
    store
        .begin_consent(&begun("bob", b"b", MINUTE), 3)
        .await
        .unwrap();
    for number in 0..20_u8 {
        let time = MINUTE + Duration::from_secs(number.into());
        store
            .begin_consent(&begun("ann", &[number], time), 3)
            .await
            .unwrap();
    }
    assert_eq!(backend.row_count().await - before, 4);
    for (state, is_kept) in [([19], true), ([17], true), ([16], false), ([0], false)] {
        let found = store.begun_consent(&state).await.unwrap();
        assert_eq!(found.is_some(), is_kept, "{state:?}");
    }
    assert!(store.begun_consent(b"b").await.unwrap().is_some());
    for number in 0..4_u8 {
        let over = begun(&format!("owner{number}"), &[100, number], Duration::ZERO);
        store.begin_consent(&over, 3).await.unwrap();
    }
    // The next call removes the rows that are over.
    assert!(backend.row_count().await - before <= 5);
}
