//! Names of conversations are a tenant's own, and ids are unique among all tenants.

use everturn_store::{
    Access, BeginTurn, Conversation, Conversations, NewConversation, StoreError, TurnStart,
    TurnStore,
};

use super::{
    Backend,
    conversations::new_conversation,
    fixture::{Turn, new_message, tenant},
};

/// A row as a release wrote it that knew no names. The default tenant had one like it, and so had others.
const OLD_ROW: &str = "INSERT INTO conversations (id, tenant_id, owner_id, agent, title, created_at, updated_at, log_id) VALUES \
     ('c', 'acme', 'ann', 'default', 'old', '2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00+00:00', 'log_old')";

async fn create(store: &impl Conversations, access: &Access, name: &str) -> Option<Conversation> {
    let new = NewConversation {
        access: access.clone(),
        ..new_conversation(name, "")
    };
    store.create_conversation(new).await.unwrap()
}

fn shown(conversation: Option<Conversation>) -> Option<(String, String, String)> {
    conversation.map(|it| (it.id, it.name, it.tenant_id))
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

pub async fn a_row_without_a_name_is_kept_and_hinders_nobody(backend: &impl Backend) {
    let store = backend.open().await;
    backend.run(OLD_ROW).await;
    let acme = Access::tenant("acme");
    let old = store.conversation(&acme, "c").await.unwrap();
    assert_eq!(shown(old.clone()), Some(named("c", "c", "acme")));
    assert_eq!(create(&store, &acme, "c").await, old);
    assert_eq!(
        create(&store, &Access::owner("acme", "bob"), "c").await,
        None
    );
    // The id that the default tenant would have is taken, which nobody there can tell.
    assert_eq!(store.conversation(&tenant(), "c").await.unwrap(), None);
    let own = create(&store, &tenant(), "c").await;
    assert_eq!(shown(own.clone()), Some(named("default~c", "c", "default")));
    assert_eq!(create(&store, &tenant(), "c").await, own);
    assert_eq!(store.conversation(&tenant(), "c").await.unwrap(), own);
    // The old one goes, and its name gets the id that it would have had.
    assert!(store.delete_conversation(&acme, "c", None).await.unwrap());
    let again = create(&store, &acme, "c").await;
    assert_eq!(shown(again), Some(named("acme~c", "c", "acme")));
    assert_eq!(store.conversation(&tenant(), "c").await.unwrap(), own);
}

pub async fn of_many_who_create_a_name_at_once_all_get_one(backend: &impl Backend) {
    let store = backend.open().await;
    backend.run(OLD_ROW).await;
    let created = |access: Access| {
        let store = store.clone();
        tokio::spawn(async move { create(&store, &access, "c").await.unwrap().id })
    };
    let (default, acme, other) = (tenant(), Access::tenant("acme"), Access::tenant("other"));
    let racing: Vec<_> = (0..24)
        .map(|number| created([&default, &acme, &other][number % 3].clone()))
        .collect();
    for (number, id) in racing.into_iter().enumerate() {
        let expected = ["default~c", "c", "other~c"][number % 3];
        assert_eq!(id.await.unwrap(), expected);
    }
}

/// Begins a turn as a workflow does that somebody has started by hand.
async fn begun<S>(store: &S, id: &str, tenant_id: &str) -> Result<TurnStart, StoreError>
where
    S: Clone + everturn_store::EventReader + Conversations + TurnStore,
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
    for (id, of) in [
        ("new", "default"),
        ("acme~new", "acme"),
        ("default~c", "default"),
    ] {
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
        ("new", "acme", "tenant `default`"),
        ("acme~new", "default", "tenant `acme`"),
        // There is one, of this tenant, with another id.
        ("c", "default", "`conversation-default~c`"),
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

pub async fn a_run_goes_on_with_a_row_without_a_name(backend: &impl Backend) {
    let store = backend.open().await;
    backend.run(OLD_ROW).await;
    let refused = begun(&store, "c", "default").await;
    assert!(
        matches!(refused, Err(StoreError::ForeignConversation(_))),
        "{refused:?}"
    );
    let refused = begun(&store, "acme~c", "acme").await;
    assert!(
        matches!(&refused, Err(StoreError::ForeignConversation(why)) if why.contains("`conversation-c`")),
        "{refused:?}"
    );
    let begun = begun(&store, "c", "acme").await;
    assert!(matches!(begun, Ok(TurnStart::Begun(_))), "{begun:?}");
}

pub async fn tools_and_hooks_are_told_the_name(backend: &impl Backend) {
    use everturn_proto::words::Effect;
    use everturn_store::ToolClaim;

    let store = backend.open().await;
    let begun = begun(&store, "acme~c", "acme").await;
    assert!(matches!(begun, Ok(TurnStart::Begun(_))), "{begun:?}");
    let turn = Turn::new(store, "acme~c", "m_acme").under(Some(0));
    turn.complete(0, "", &[Effect::Read]).await;
    turn.thought(0).await;
    let claim = turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let ToolClaim::Run { caller, .. } = claim else {
        panic!("{claim:?}")
    };
    assert_eq!(caller.conversation_name, "c");
    assert_eq!(caller.tenant_id, "acme");
    let owner = turn.store.owner_of("acme~c").await.unwrap().unwrap();
    assert_eq!(owner.conversation_name, "c");
}
