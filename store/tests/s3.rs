//! Files in a real object store that speaks S3, with their rows in SQLite.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use everturn_store::{
    Access, BlobFiles, BlobRules, Conversations, NewConversation, ObjectStore, S3Config, S3Store,
    SqliteStore, StoreError, Upload, UploadError,
};
use everturn_test_servers::s3::S3;

const PREFIX: &str = "everturn";

fn client(s3: &S3, secret: &str) -> S3Store {
    // A client of HTTP panics without a TLS backend, even for http.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let config = S3Config {
        endpoint: s3.url().parse().unwrap(),
        region: "us-east-1".into(),
        bucket: S3::BUCKET.into(),
        prefix: format!("{PREFIX}/"),
        is_path_style: true,
        key_id: S3::KEY_ID.into(),
        secret: secret.into(),
        token: None,
    };
    S3Store::new(config).unwrap()
}

fn text(text: &str) -> Upload {
    Upload {
        media_type: "text/plain".into(),
        file_name: "note.txt".into(),
        bytes: text.into(),
    }
}

fn tenant() -> Access {
    Access::tenant("default")
}

async fn conversation(store: &SqliteStore) {
    let new = NewConversation {
        name: "c".into(),
        access: tenant(),
        agent: "default".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    store.create_conversation(new).await.unwrap().unwrap();
}

#[tokio::test]
async fn files_are_written_read_and_removed() {
    let s3 = S3::start().await;
    let store = SqliteStore::open_in_memory().await.unwrap();
    let objects: Arc<dyn ObjectStore> = Arc::new(client(&s3, S3::SECRET));
    let rows = Arc::new(store.clone());
    let files = BlobFiles::new(rows.clone(), Some(objects), BlobRules::default());
    conversation(&store).await;
    let left = files.upload(&tenant(), text("left"), None).await.unwrap();
    let kept = files.keep("c", "exec", text("kept")).await.unwrap();
    assert_eq!(s3.objects(PREFIX).len(), 2);
    let read = files.file(&tenant(), &left.id).await.unwrap().unwrap();
    assert_eq!(read.bytes, b"left");
    assert_eq!(
        files.remove_objects().await.unwrap(),
        0,
        "their blobs are there"
    );
    // Without the configuration nobody is told that there is no such file.
    let without = BlobFiles::new(rows, None, BlobRules::default());
    let refused = without.file(&tenant(), &left.id).await;
    assert!(matches!(refused, Err(StoreError::ObjectsUnavailable(_))));

    assert!(
        store
            .delete_conversation(&tenant(), "c", None)
            .await
            .unwrap()
    );
    assert_eq!(files.file(&tenant(), &kept.id).await.unwrap(), None);
    assert_eq!(files.remove_objects().await.unwrap(), 1);
    assert_eq!(s3.objects(PREFIX), [left.id.as_str()]);
    let object = client(&s3, S3::SECRET);
    object.remove(&object.key_of("unknown")).await.unwrap();
    object.remove(&object.key_of(&left.id)).await.unwrap();
    assert_eq!(files.file(&tenant(), &left.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_store_that_is_away_or_refuses_the_key_is_an_error_that_may_pass() {
    let s3 = S3::start().await;
    let store = Arc::new(SqliteStore::open_in_memory().await.unwrap());
    let files = |secret: &str| {
        let objects: Arc<dyn ObjectStore> = Arc::new(client(&s3, secret));
        BlobFiles::new(store.clone(), Some(objects), BlobRules::default())
    };
    let away = |done: Result<_, UploadError>| match done {
        Err(UploadError::Store(StoreError::ObjectsUnavailable(why))) => why,
        other => panic!("{other:?}"),
    };
    let good = files(S3::SECRET);
    let blob = good.upload(&tenant(), text("a"), None).await.unwrap();
    let refused = away(files("wrong").upload(&tenant(), text("b"), None).await);
    assert!(refused.contains("403"), "{refused}");
    s3.kill().await;
    let gone = away(good.upload(&tenant(), text("c"), None).await);
    assert!(!gone.contains("Signature"), "{gone}");
    assert!(good.file(&tenant(), &blob.id).await.is_err());
    s3.start_again().await;
    let read = good.file(&tenant(), &blob.id).await.unwrap().unwrap();
    assert_eq!(read.bytes, b"a");
    good.upload(&tenant(), text("c"), None).await.unwrap();
}

#[tokio::test]
async fn bytes_that_were_changed_are_not_given_out() {
    let s3 = S3::start().await;
    let store = Arc::new(SqliteStore::open_in_memory().await.unwrap());
    let object = client(&s3, S3::SECRET);
    let objects: Arc<dyn ObjectStore> = Arc::new(client(&s3, S3::SECRET));
    let files = BlobFiles::new(store, Some(objects), BlobRules::default());
    let blob = files.upload(&tenant(), text("abc"), None).await.unwrap();
    for changed in ["abd", "abcd"] {
        let key = object.key_of(&blob.id);
        object
            .put(&key, changed.into(), "text/plain")
            .await
            .unwrap();
        let read = files.file(&tenant(), &blob.id).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }
}
