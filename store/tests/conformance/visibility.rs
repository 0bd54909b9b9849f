//! Another tenant's and another owner's conversations are as if they were not there, in every query of a caller.

use everturn_store::{
    Access, ConversationChange, Conversations, EventReader, ListCursor, ListFilter, ListQuery,
    MessageQueue, NewConversation, PageLimit, StoreError,
};

use super::{
    Backend,
    conversations::new_conversation,
    fixture::{Turn, new_message, tenant},
};

/// Returns the callers who ask for Ann's conversation, and whether each of them sees it.
fn callers() -> [(Access, bool); 4] {
    [
        (tenant(), true),
        (Access::owner("default", "ann"), true),
        (Access::owner("default", "bob"), false),
        (Access::tenant("another"), false),
    ]
}

/// Creates three conversations of one tenant: `shared`, which has no owner, `anns`, which has a turn, and `bobs`.
async fn three_conversations<B: Backend>(backend: &B) -> B::Store {
    let store = backend.open().await;
    for (id, access) in [
        ("shared", tenant()),
        ("anns", Access::owner("default", "ann")),
        ("bobs", Access::owner("default", "bob")),
    ] {
        let created = create(&store, id, access).await;
        assert!(created);
    }
    Turn::begun(store.clone(), "anns", "m").await;
    store
}

/// Creates a conversation. Returns true when it exists and its creator sees it.
async fn create(store: &impl Conversations, id: &str, access: Access) -> bool {
    let new = NewConversation {
        access,
        ..new_conversation(id, "")
    };
    store.create_conversation(new).await.unwrap().is_some()
}

pub async fn a_caller_reads_only_what_is_theirs(backend: &impl Backend) {
    let store = three_conversations(backend).await;
    let log = store.conversation(&tenant(), "anns").await;
    let log = log.unwrap().unwrap().log();
    for (access, sees) in callers() {
        let found = store.conversation(&access, "anns").await.unwrap();
        assert_eq!(found.is_some(), sees, "{access:?}");
        let status = store.conversation_head(&access, "anns").await.unwrap();
        assert_eq!(status.is_some(), sees, "{access:?}");
        let page = store
            .events(&access, &log, 0, PageLimit::rows(10))
            .await
            .unwrap();
        assert_eq!(page.events.len(), usize::from(sees), "{access:?}");
        let page = store
            .events_before(&access, &log, 10, PageLimit::rows(10))
            .await
            .unwrap();
        assert_eq!(page.events.len(), usize::from(sees), "{access:?}");
    }
}

pub async fn a_caller_writes_only_what_is_theirs(backend: &impl Backend) {
    let store = three_conversations(backend).await;
    for (access, sees) in callers() {
        let created = create(&store, "anns", access.clone()).await;
        // In another tenant it is another conversation.
        assert_eq!(created, sees || access.tenant_id == "another", "{access:?}");
        let queued = store
            .queue_message(&access, new_message("anns", "q", None))
            .await;
        assert_eq!(queued.is_ok(), sees, "{access:?}");
        assert!(
            sees || matches!(queued, Err(StoreError::NotFound { .. })),
            "{access:?}"
        );
        if sees {
            continue;
        }
        let renamed = store
            .change_conversation(&access, "anns", &ConversationChange::of_title("mine"))
            .await;
        assert_eq!(renamed.unwrap(), None, "{access:?}");
        let is_deleted = store
            .delete_conversation(&access, "anns", None)
            .await
            .unwrap();
        assert!(!is_deleted, "{access:?}");
    }
    let stored = store.conversation(&tenant(), "anns").await.unwrap();
    assert_eq!(stored.unwrap().title.as_deref(), Some("about anns"));
}

pub async fn a_caller_lists_only_what_is_theirs(backend: &impl Backend) {
    let store = three_conversations(backend).await;
    let place = Some(ListCursor {
        active_at: "2100-01-01T00:00:00Z".parse().unwrap(),
        id: "x".into(),
    });
    let search = ListFilter::new(Some("ABOUT"), Some("default".into()));
    for (access, _) in callers() {
        let expected: &[&str] = match access.owner_id.as_deref() {
            _ if access.tenant_id != "default" => &[],
            None => &["anns", "bobs", "shared"],
            Some("ann") => &["anns"],
            Some(_) => &["bobs"],
        };
        for (before, filter) in [
            (None, search.clone()),
            (None, ListFilter::default()),
            (place.clone(), search.clone()),
        ] {
            let query = ListQuery {
                before,
                limit: 10,
                filter,
            };
            let page = store.list_conversations(&access, &query).await.unwrap();
            let mut ids: Vec<_> = page
                .conversations
                .iter()
                .map(|row| &row.conversation.id)
                .collect();
            ids.sort_unstable();
            assert_eq!(ids, expected, "{access:?}");
        }
    }
}
