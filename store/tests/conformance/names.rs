//! Names of conversations are a tenant's own, and ids are unique among all tenants.

use everturn_store::{
    Access, BeginTurn, Conversation, Conversations, MessageQueue, NewConversation, StoreError,
    TurnStart,
};

use super::{
    Backend,
    conversations::new_conversation,
    fixture::{Turn, TurnStore, new_message, tenant},
};

async fn create(store: &impl Conversations, access: &Access, name: &str) -> Option<Conversation> {
    let new = NewConversation {
        access: access.clone(),
        ..new_conversation(name, "")
    };
    store.create_conversation(new).await.unwrap()
}

fn shown(conversation: Option<Conversation>) -> Option<(String, String, String)> {
    conversation.map(|it| (it.id.clone(), it.name().to_owned(), it.tenant_id))
}

fn named(id: &str, name: &str, tenant: &str) -> (String, String, String) {
    (id.into(), name.into(), tenant.into())
}

pub async fn each_tenant_has_its_own_names(backend: &impl Backend) {
    let store = backend.open().await;
    let (acme, other) = (Access::tenant("acme"), Access::tenant("other"));
    let ids = [
        (tenant(), "c", "default"),
        (acme.clone(), "acme~c", "acme"),
        (other.clone(), "other~c", "other"),
    ];
    for (access, id, of) in &ids {
        assert_eq!(store.conversation(access, "c").await.unwrap(), None);
        let created = create(&store, access, "c").await;
        assert_eq!(shown(created.clone()), Some(named(id, "c", of)));
        assert_eq!(create(&store, access, "c").await, created);
    }
    for (access, id, of) in &ids {
        let found = store.conversation(access, "c").await.unwrap();
        assert_eq!(shown(found), Some(named(id, "c", of)));
        assert_eq!(
            store.conversation(access, "acme~c").await.unwrap(),
            None,
            "an id is no name"
        );
    }
    // What is done to one of them leaves the others alone, and nobody does it to another tenant's.
    store
        .queue_message(&acme, new_message("acme~c", "m", None))
        .await
        .unwrap();
    for id in ["c", "other~c"] {
        let refused = store.queue_message(&acme, new_message(id, "m", None)).await;
        assert!(matches!(refused, Err(StoreError::NotFound { .. })));
        assert!(!store.delete_conversation(&acme, id, None).await.unwrap());
    }
    assert!(
        store
            .delete_conversation(&acme, "acme~c", None)
            .await
            .unwrap()
    );
    assert_eq!(store.conversation(&acme, "c").await.unwrap(), None);
    assert!(store.conversation(&other, "c").await.unwrap().is_some());
    let again = create(&store, &acme, "c").await.unwrap();
    assert_eq!((again.message_count, again.last_sequence), (0, 0));
}

pub async fn a_name_is_one_owners_in_its_tenant(backend: &impl Backend) {
    let store = backend.open().await;
    let owner = |tenant: &str, owner: &str| Access::owner(tenant, owner);
    assert!(create(&store, &owner("acme", "ann"), "c").await.is_some());
    assert_eq!(create(&store, &owner("acme", "bob"), "c").await, None);
    assert!(create(&store, &owner("other", "bob"), "c").await.is_some());
    let bob = owner("acme", "bob");
    assert_eq!(store.conversation(&bob, "c").await.unwrap(), None);
}

pub async fn of_many_who_create_a_name_at_once_all_get_one(backend: &impl Backend) {
    let store = backend.open().await;
    let created = |access: Access| {
        let store = store.clone();
        tokio::spawn(async move { create(&store, &access, "c").await.unwrap().id })
    };
    let (default, acme, other) = (tenant(), Access::tenant("acme"), Access::tenant("other"));
    let racing: Vec<_> = (0..24)
        .map(|number| created([&default, &acme, &other][number % 3].clone()))
        .collect();
    for (number, id) in racing.into_iter().enumerate() {
        let expected = ["c", "acme~c", "other~c"][number % 3];
        assert_eq!(id.await.unwrap(), expected);
    }
}

/// Begins a turn as a workflow does that somebody has started by hand.
async fn begun<S>(store: &S, id: &str, tenant_id: &str) -> Result<TurnStart, StoreError>
where
    S: Clone + TurnStore,
{
    let turn = Turn::new(store.clone(), id, &format!("m_{tenant_id}"));
    let begin = BeginTurn {
        tenant_id: tenant_id.into(),
        ..turn.begin("hello")
    };
    store.begin_turn(begin).await
}

pub async fn a_run_creates_only_a_conversation_of_its_tenant(backend: &impl Backend) {
    let store = backend.open().await;
    for (id, of) in [("new", "default"), ("acme~new", "acme")] {
        let begun = begun(&store, id, of).await;
        assert!(matches!(begun, Ok(TurnStart::Begun(_))), "{begun:?}");
    }
    let found = store.conversation(&Access::tenant("acme"), "new").await;
    assert_eq!(
        shown(found.unwrap()),
        Some(named("acme~new", "new", "acme"))
    );
    let rows = backend.row_count().await;
    for (id, of, says) in [
        // There is no such conversation, and it would not be one of this tenant.
        ("d", "acme", "`conversation-acme~d`"),
        ("other~d", "acme", "tenant `other`"),
        ("other~d", "default", "tenant `other`"),
        // There is one, of another tenant.
        ("new", "acme", "`conversation-acme~new`"),
        ("acme~new", "default", "tenant `acme`"),
        // There is one, of this tenant, with another id.
        ("default~new", "default", "`conversation-new`"),
    ] {
        match begun(&store, id, of).await {
            Err(StoreError::ForeignConversation(why)) => {
                assert!(why.contains(says), "{id} of {of}: {why}");
            }
            other => panic!("{id} of {of}: {other:?}"),
        }
    }
    assert_eq!(backend.row_count().await, rows);
}
