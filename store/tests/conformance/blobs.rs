//! Images and files: who may see them, which conversation they belong to, and when they go.

use std::sync::Arc;

use chrono::Utc;
use everturn_proto::{Thread, event::Attachment};
use everturn_store::{
    Access, BlobFiles, BlobRules, Blobs, Conversations, MessageQueue, Missing, NewMessage,
    PageLimit, StoreError, TurnInputs, Upload, UploadError,
};

use super::{
    Backend,
    fixture::{Turn, new_message, tenant},
};

/// Enough of a PNG for its type.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0 pixels";

fn files(store: &(impl Blobs + Clone + 'static), rules: BlobRules) -> BlobFiles {
    BlobFiles::new(Arc::new(store.clone()), None, rules)
}

fn png() -> Upload {
    Upload {
        media_type: "image/png".into(),
        file_name: "cat.png".into(),
        bytes: PNG.into(),
    }
}

fn naming(conversation: &str, message: &str, blobs: &[&str]) -> NewMessage {
    NewMessage {
        attachments: blobs.iter().map(|&id| id.to_owned()).collect(),
        ..new_message(conversation, message, Some(message))
    }
}

fn is_no_blob<T>(result: &Result<T, StoreError>) -> bool {
    matches!(
        result,
        Err(StoreError::NotFound {
            what: Missing::Blob,
            ..
        })
    )
}

pub async fn a_file_is_read_by_those_who_may(backend: &impl Backend) {
    let store = backend.open().await;
    let files = files(&store, BlobRules::default());
    let (ann, bob) = (
        Access::owner(tenant().tenant_id, "ann"),
        Access::owner(tenant().tenant_id, "bob"),
    );
    let blob = files.upload(&ann, png(), None).await.unwrap();
    assert_eq!((blob.bytes as usize, blob.sha256.len()), (PNG.len(), 64));
    for may in [&ann, &tenant()] {
        let file = files.file(may, &blob.id).await.unwrap().unwrap();
        assert_eq!((file.bytes.as_slice(), &file.blob), (PNG, &blob));
    }
    for stranger in [
        &bob,
        &Access::tenant("other"),
        &Access::owner("other", "ann"),
    ] {
        assert_eq!(files.file(stranger, &blob.id).await.unwrap(), None);
    }
    // A program uploads for everybody. Once a conversation has the file, its owner may read it.
    let shared = files.upload(&tenant(), png(), None).await.unwrap();
    assert_eq!(files.file(&bob, &shared.id).await.unwrap(), None);
    let new = everturn_store::NewConversation {
        name: "c".into(),
        access: bob.clone(),
        agent: "default".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    store.create_conversation(new).await.unwrap().unwrap();
    let message = naming("c", "m", &[&shared.id]);
    store.queue_message(&tenant(), message).await.unwrap();
    assert!(files.file(&bob, &shared.id).await.unwrap().is_some());
    assert_eq!(files.file(&ann, &shared.id).await.unwrap(), None);
}

pub async fn an_upload_that_is_repeated_is_one_file(backend: &impl Backend) {
    let store = backend.open().await;
    let files = files(&store, BlobRules::default());
    let first = files.upload(&tenant(), png(), Some("key")).await.unwrap();
    let again = files.upload(&tenant(), png(), Some("key")).await.unwrap();
    assert_eq!(first, again);
    let other = Upload {
        file_name: "dog.png".into(),
        ..png()
    };
    let refused = files.upload(&tenant(), other, Some("key")).await;
    assert!(matches!(
        refused,
        Err(UploadError::Store(StoreError::OtherContent { .. }))
    ));
    let without_key = files.upload(&tenant(), png(), None).await.unwrap();
    assert_ne!(
        without_key.id, first.id,
        "a file belongs to one conversation"
    );
    let of_other = files
        .upload(&Access::tenant("other"), png(), Some("key"))
        .await;
    assert_ne!(of_other.unwrap().id, first.id);
}

async fn refused_messages_change_nothing<B: Backend>(
    backend: &B,
    store: &B::Store,
    [one, two, foreign]: [&str; 3],
) {
    let rows = backend.row_count().await;
    for unknown in ["blob_0", foreign] {
        let refused = store
            .queue_message(&tenant(), naming("c", "bad", &[one, unknown]))
            .await;
        assert!(is_no_blob(&refused), "{refused:?}");
    }
    let small = NewMessage {
        max_attached_bytes: PNG.len() as u64,
        ..naming("c", "bad", &[one, two])
    };
    let refused = store.queue_message(&tenant(), small).await;
    assert!(matches!(
        refused,
        Err(StoreError::AttachmentsTooLarge { .. })
    ));
    assert_eq!(
        backend.row_count().await,
        rows,
        "a refused message changes nothing"
    );
}

pub async fn a_message_gives_its_files_to_its_conversation(backend: &impl Backend) {
    let store = backend.open().await;
    let files = files(&store, BlobRules::default());
    let turn = Turn::begun(store.clone(), "c", "m").await;
    Turn::begun(store.clone(), "d", "m").await;
    let one = files.upload(&tenant(), png(), None).await.unwrap();
    let two = files.upload(&tenant(), png(), None).await.unwrap();
    let foreign = files
        .upload(&Access::tenant("other"), png(), None)
        .await
        .unwrap();
    refused_messages_change_nothing(backend, &store, [&one.id, &two.id, &foreign.id]).await;
    // What a refused message named is free still.
    let both = naming("c", "next", &[&two.id, &one.id]);
    let queued = store.queue_message(&tenant(), both.clone()).await.unwrap();
    let repeated = store.queue_message(&tenant(), both).await.unwrap();
    assert_eq!(
        (repeated.message_id, repeated.is_new),
        (queued.message_id.clone(), false)
    );
    for other in [
        naming("c", "next", &[&one.id, &two.id]),
        naming("c", "next", &[]),
    ] {
        let refused = store.queue_message(&tenant(), other).await;
        assert!(
            matches!(refused, Err(StoreError::OtherContent { .. })),
            "{refused:?}"
        );
    }
    let taken = store
        .queue_message(&tenant(), naming("d", "steal", &[&one.id]))
        .await;
    assert!(is_no_blob(&taken), "{taken:?}");
    assert!(files.file_of("c", &one.id).await.unwrap().is_some());
    assert_eq!(files.file_of("d", &one.id).await.unwrap(), None);
    // It joins the running turn: the event and the context name the files, in the message's order.
    turn.take(&queued.message_id).await;
    let events = turn.all_data("user_message").await;
    let data = &events[1]["attachments"];
    assert_eq!(data[0]["blob_id"], two.id.as_str());
    assert_eq!(data[1]["media_type"], "image/png");
    assert!(
        events[0].get("attachments").is_none(),
        "a plain message has no field more"
    );
    let context = store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap();
    let named: Vec<&Attachment> = context
        .messages
        .iter()
        .flat_map(|it| &it.attachments)
        .collect();
    assert_eq!(named, [&two.attachment(), &one.attachment()]);
}

pub async fn a_withdrawn_message_frees_its_files(backend: &impl Backend) {
    let store = backend.open().await;
    let files = files(&store, BlobRules::default());
    Turn::begun(store.clone(), "c", "m").await;
    Turn::begun(store.clone(), "d", "m").await;
    let one = files.upload(&tenant(), png(), None).await.unwrap();
    let two = files.upload(&tenant(), png(), None).await.unwrap();
    let first = store
        .queue_message(&tenant(), naming("c", "a", &[&one.id]))
        .await
        .unwrap();
    let second = naming("c", "b", &[&one.id, &two.id]);
    let second = store.queue_message(&tenant(), second).await.unwrap();
    let tenant = tenant();
    let withdrawn = store.withdraw_message(&tenant, "c", &second.message_id);
    assert!(withdrawn.await.unwrap());
    let of_first = store
        .queue_message(&tenant, naming("d", "a", &[&one.id]))
        .await;
    assert!(is_no_blob(&of_first), "another message names it still");
    store
        .queue_message(&tenant, naming("d", "b", &[&two.id]))
        .await
        .unwrap();
    assert!(
        store
            .withdraw_message(&tenant, "c", &first.message_id)
            .await
            .unwrap()
    );
    store
        .queue_message(&tenant, naming("d", "c", &[&one.id]))
        .await
        .unwrap();
}

pub async fn files_go_with_their_conversation_or_after_a_day(backend: &impl Backend) {
    let store = backend.open().await;
    let files = files(&store, BlobRules::default());
    Turn::begun(store.clone(), "c", "m").await;
    let named = files.upload(&tenant(), png(), None).await.unwrap();
    let left = files.upload(&tenant(), png(), None).await.unwrap();
    store
        .queue_message(&tenant(), naming("c", "a", &[&named.id]))
        .await
        .unwrap();
    let of_tool = files.keep("c", "exec_1", png()).await.unwrap();
    let again = files.keep("c", "exec_1", png()).await.unwrap();
    assert_eq!(of_tool, again, "a tool that runs again gives the same file");
    assert_ne!(
        files.keep("c", "exec_2", png()).await.unwrap().id,
        of_tool.id
    );
    assert!(files.file(&tenant(), &of_tool.id).await.unwrap().is_some());
    assert_eq!(
        files.remove_unattached().await.unwrap(),
        0,
        "it is not a day old"
    );
    backend
        .run("UPDATE blobs SET created_at = '2001-01-01T00:00:00Z'")
        .await;
    assert_eq!(files.remove_unattached().await.unwrap(), 1);
    assert_eq!(files.file(&tenant(), &left.id).await.unwrap(), None);
    assert!(files.file(&tenant(), &named.id).await.unwrap().is_some());
    assert!(
        store
            .delete_conversation(&tenant(), "c", None)
            .await
            .unwrap()
    );
    for id in [&named.id, &of_tool.id] {
        assert_eq!(files.file(&tenant(), id).await.unwrap(), None);
    }
    let late = files.keep("c", "exec_3", png()).await;
    assert!(
        matches!(
            &late,
            Err(UploadError::Store(StoreError::NotFound {
                what: Missing::Conversation,
                ..
            }))
        ),
        "{late:?}"
    );
}

pub async fn what_a_tenant_leaves_lying_is_bounded(backend: &impl Backend) {
    let store = backend.open().await;
    let rules = BlobRules {
        max_unattached_bytes: PNG.len() as u64 * 2,
        ..BlobRules::default()
    };
    let files = files(&store, rules);
    Turn::begun(store.clone(), "c", "m").await;
    let first = files.upload(&tenant(), png(), None).await.unwrap();
    files.upload(&tenant(), png(), None).await.unwrap();
    let refused = files.upload(&tenant(), png(), None).await;
    assert!(matches!(
        refused,
        Err(UploadError::Store(StoreError::TooManyBlobs { .. }))
    ));
    files
        .upload(&Access::tenant("other"), png(), None)
        .await
        .unwrap();
    // What a message names does not count, and what is a day old goes with the next upload.
    store
        .queue_message(&tenant(), naming("c", "a", &[&first.id]))
        .await
        .unwrap();
    files.upload(&tenant(), png(), None).await.unwrap();
    assert!(files.upload(&tenant(), png(), None).await.is_err());
    backend
        .run("UPDATE blobs SET created_at = '2001-01-01T00:00:00Z'")
        .await;
    files.upload(&tenant(), png(), None).await.unwrap();
}

pub async fn an_object_is_noted_until_its_blob_is_stored(backend: &impl Backend) {
    let store = backend.open().await;
    let later = Utc::now() + chrono::TimeDelta::hours(1);
    store.note_object("a", later).await.unwrap();
    assert_eq!(
        store.removed_objects(Utc::now(), 10).await.unwrap(),
        [""; 0]
    );
    let due = later + chrono::TimeDelta::seconds(1);
    assert_eq!(store.removed_objects(due, 10).await.unwrap(), ["a"]);
    store.forget_object("a").await.unwrap();
    assert_eq!(store.removed_objects(due, 10).await.unwrap(), [""; 0]);
    // The note is gone: somebody has removed the object, so no blob may name it.
    let new = everturn_store::NewBlob {
        blob: everturn_store::Blob {
            id: "blob_x".into(),
            media_type: "image/png".into(),
            file_name: String::new(),
            bytes: 1,
            sha256: "0".repeat(64),
        },
        content: everturn_store::BlobContent::Object("a".into()),
    };
    let refused = store.add_blob(&tenant(), new, None, 100).await;
    assert!(matches!(refused, Err(StoreError::ObjectsUnavailable(_))));
    assert_eq!(store.blob(&tenant(), "blob_x").await.unwrap(), None);
}
