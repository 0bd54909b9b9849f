//! Conversations and the messages they accept (invariant 9, accepted means durable).

use std::num::NonZeroU32;

use everturn_proto::words::AgentExecutionStatus;
use everturn_store::{
    Access, ConversationChange, Conversations, MessageQueue, Missing, NewConversation, NewMessage,
    StoreError, TurnsOf,
};

use super::{
    Backend,
    fixture::{Turn, new_message, tenant},
};

pub(super) fn new_conversation(id: &str, tenant: &str) -> NewConversation {
    let title = format!("about {id}");
    NewConversation {
        name: id.into(),
        access: Access::tenant(tenant),
        agent: "default".into(),
        title: Some(title),
        model: None,
        metadata: std::collections::BTreeMap::new(),
    }
}

pub async fn creating_twice_gives_the_first(backend: &impl Backend) {
    let store = backend.open().await;
    let first = store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            first.tenant_id.as_str(),
            first.title.as_deref(),
            first.message_count
        ),
        ("default", Some("about c"), 0)
    );
    let again = NewConversation {
        title: Some("another".into()),
        ..new_conversation("c", "default")
    };
    assert_eq!(
        store.create_conversation(again).await.unwrap().as_ref(),
        Some(&first)
    );
    assert_eq!(
        store.conversation(&tenant(), "c").await.unwrap(),
        Some(first)
    );
    assert_eq!(
        store.conversation(&tenant(), "unknown").await.unwrap(),
        None
    );
    // A turn keeps the title that the client gave.
    let turn = Turn::begun(store, "c", "m").await;
    assert_eq!(turn.conversation().await.title.as_deref(), Some("about c"));
}

pub async fn a_client_message_id_is_accepted_once(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    let first = store
        .queue_message(&tenant(), new_message("c", "m1", Some("client")))
        .await
        .unwrap();
    assert!(first.is_new && first.is_waiting());
    let again = store
        .queue_message(&tenant(), new_message("c", "m2", Some("client")))
        .await
        .unwrap();
    assert_eq!(
        (again.message_id.as_str(), again.is_new, again.is_waiting()),
        ("m1", false, true)
    );
    let same_id = NewMessage {
        content: "say client".into(),
        ..new_message("c", "m1", None)
    };
    let same_id = store.queue_message(&tenant(), same_id).await.unwrap();
    assert_eq!((same_id.message_id.as_str(), same_id.is_new), ("m1", false));
    Turn::begun(store.clone(), "c", "m1").await;
    let taken = store
        .queue_message(&tenant(), new_message("c", "m3", Some("client")))
        .await
        .unwrap();
    assert_eq!(
        (taken.message_id.as_str(), taken.is_waiting()),
        ("m1", false)
    );
    // A message with the same id and another text must not vanish.
    let other = NewMessage {
        content: "say something else".into(),
        ..new_message("c", "m4", Some("client"))
    };
    let refused = store.queue_message(&tenant(), other).await;
    assert!(
        matches!(&refused, Err(StoreError::OtherContent { client_message_id }) if client_message_id == "client")
    );
    // The same id in another conversation is another message.
    store
        .create_conversation(new_conversation("d", "default"))
        .await
        .unwrap();
    assert!(
        store
            .queue_message(&tenant(), new_message("d", "m1", Some("client")))
            .await
            .unwrap()
            .is_new
    );
}

pub async fn racing_posts_of_one_message_store_one(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    let handles = [store.clone(), backend.open().await];
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let (store, id) = (handles[number % 2].clone(), format!("m{number}"));
            tokio::spawn(async move {
                store
                    .queue_message(&tenant(), new_message("c", &id, Some("client")))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| answer.is_new).count(), 1);
    assert!(
        answers
            .iter()
            .all(|answer| answer.message_id == answers[0].message_id)
    );
}

pub async fn the_queue_has_a_limit(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    let post = async |id: &str| {
        let mut message = new_message("c", id, Some(id));
        message.max_queued = 2;
        store.queue_message(&tenant(), message).await
    };
    post("m1").await.unwrap();
    post("m2").await.unwrap();
    assert!(matches!(
        post("m3").await,
        Err(StoreError::QueueFull { limit: 2 })
    ));
    assert!(
        !post("m2").await.unwrap().is_new,
        "a repeat is answered though the queue is full"
    );
    Turn::begun(store.clone(), "c", "m1").await;
    post("m3").await.unwrap();
}

pub async fn a_message_needs_its_conversation(backend: &impl Backend) {
    let store = backend.open().await;
    let refused = store
        .queue_message(&tenant(), new_message("unknown", "m", None))
        .await;
    assert!(
        matches!(
            refused,
            Err(StoreError::NotFound {
                what: Missing::Conversation,
                ..
            })
        ),
        "{refused:?}"
    );
}

/// All conversations of the tenant in which something runs or waits are counted, whoever owns them. A message to one of
/// these conversations is never refused for this limit.
pub async fn a_tenant_has_a_limit_of_turns(backend: &impl Backend) {
    let store = backend.open().await;
    let (ann, other) = (Access::owner("default", "ann"), Access::tenant("t2"));
    for (id, access) in [
        ("a", tenant()),
        ("b", ann.clone()),
        ("c", tenant()),
        ("d", tenant()),
        ("x", other.clone()),
    ] {
        let new = NewConversation {
            access,
            ..new_conversation(id, "")
        };
        store.create_conversation(new).await.unwrap();
    }
    let post = async |access: &Access, conversation: &str, message: &str, max_turns: u32| {
        let new = NewMessage {
            max_turns: NonZeroU32::new(max_turns),
            ..new_message(conversation, message, Some(message))
        };
        store.queue_message(access, new).await
    };
    let is_refused =
        async |conversation: &str, message: &str| match post(&tenant(), conversation, message, 2)
            .await
        {
            Err(StoreError::TooManyTurns {
                limit: 2,
                of: TurnsOf::Tenant,
            }) => true,
            Err(other) => panic!("{other}"),
            Ok(_) => false,
        };
    // In one conversation a turn runs with a message behind it, and in another one a message waits.
    let running = Turn::begun(store.clone(), "a", "m1").await;
    assert!(!is_refused("a", "m2").await);
    post(&ann, "b", "m1", 2).await.unwrap();
    assert!(is_refused("c", "m1").await);
    assert!(
        !is_refused("a", "m3").await,
        "no more turns at once by this"
    );
    assert!(!is_refused("b", "m1").await, "a repeat is answered");
    post(&other, "t2~x", "m1", 2).await.unwrap();
    post(&tenant(), "c", "m1", 0).await.unwrap();
    assert!(is_refused("d", "m1").await);

    // A conversation counts no more when its turns have ended or it was deleted.
    running.end(0, AgentExecutionStatus::Cancelled).await;
    for message in ["m2", "m3"] {
        assert!(is_refused("d", "m1").await, "one still waits");
        Turn::begun(store.clone(), "a", message)
            .await
            .end(0, AgentExecutionStatus::Failed)
            .await;
    }
    assert!(is_refused("d", "m1").await);
    assert!(
        store
            .delete_conversation(&tenant(), "c", None)
            .await
            .unwrap()
    );
    assert!(!is_refused("d", "m1").await);
}

pub async fn turns_of_an_owner_are_limited(backend: &impl Backend) {
    let store = backend.open().await;
    let [ann, bob] = ["ann", "bob"].map(|owner| Access::owner("default", owner));
    let nobody = tenant();
    for (id, access) in [
        ("a", &ann),
        ("b", &ann),
        ("c", &ann),
        ("x", &bob),
        ("y", &nobody),
        ("z", &nobody),
    ] {
        let new = NewConversation {
            access: access.clone(),
            ..new_conversation(id, "")
        };
        store.create_conversation(new).await.unwrap();
    }
    let post = async |access: &Access, conversation: &str, turns: u32| {
        let message = format!("m{turns}");
        let new = NewMessage {
            max_turns: NonZeroU32::new(turns),
            max_turns_of_owner: NonZeroU32::new(2),
            ..new_message(conversation, &message, None)
        };
        match store.queue_message(access, new).await {
            Ok(_) => None,
            Err(StoreError::TooManyTurns { of, .. }) => Some(of),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(post(&ann, "a", 100).await, None);
    assert_eq!(post(&ann, "b", 100).await, None);
    assert_eq!(post(&ann, "c", 100).await, Some(TurnsOf::Owner));
    assert_eq!(
        post(&nobody, "c", 101).await,
        Some(TurnsOf::Owner),
        "whoever writes"
    );
    assert_eq!(
        post(&ann, "a", 101).await,
        None,
        "no more turns at once by this"
    );
    assert_eq!(post(&bob, "x", 100).await, None, "another owner");
    assert_eq!(post(&nobody, "y", 100).await, None, "without an owner");
    assert_eq!(post(&nobody, "z", 100).await, None, "without an owner");
    assert_eq!(post(&bob, "x", 3).await, Some(TurnsOf::Tenant));
    assert!(store.delete_conversation(&nobody, "a", None).await.unwrap());
    assert_eq!(post(&ann, "c", 100).await, None, "one has gone");
}

pub async fn a_conversation_is_renamed(backend: &impl Backend) {
    let store = backend.open().await;
    let made = store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap()
        .unwrap();
    let renamed = store
        .change_conversation(
            &tenant(),
            "c",
            &ConversationChange::of_title("Grüße 'n' \\ %"),
        )
        .await
        .unwrap()
        .unwrap();
    assert_eq!(renamed.title.as_deref(), Some("Grüße 'n' \\ %"));
    assert_eq!(
        (&renamed.id, renamed.active_at, &renamed.agent),
        (&made.id, made.active_at, &made.agent)
    );
    assert_eq!(
        store.conversation(&tenant(), "c").await.unwrap(),
        Some(renamed)
    );
    assert_eq!(
        store
            .change_conversation(&tenant(), "unknown", &ConversationChange::of_title("x"))
            .await
            .unwrap(),
        None
    );
    // A conversation without a title is named after its next message.
    store
        .change_conversation(&tenant(), "c", &ConversationChange::of_title(""))
        .await
        .unwrap();
    Turn::begun(store.clone(), "c", "m").await;
    assert_eq!(
        store
            .conversation(&tenant(), "c")
            .await
            .unwrap()
            .unwrap()
            .title
            .as_deref(),
        Some("say m")
    );
}
