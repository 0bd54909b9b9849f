//! Blobs: rows with bytes or with the key of an object, and the list of objects to be removed.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Connection, Database,
    dialect::{list, words},
    missing,
    sql::blobs::{
        ADD_BLOB, ADD_BLOB_OF, BLOB, BLOB_OF, FORGET_OBJECT, LOCK_UNATTACHED, NOTE_OBJECT,
        NOTE_OBJECTS, REMOVE_BLOBS, REMOVED_OBJECTS, UPLOADED_BLOB,
    },
};
use crate::{
    api::{Access, Blob, BlobContent, Blobs, NewBlob, Result, StoredBlob},
    columns::{now, wide},
    error::{Missing, StoreError},
    rows::blobs::BlobRow,
};

#[async_trait]
impl Blobs for Database {
    async fn add_blob(
        &self,
        access: &Access,
        new: NewBlob,
        upload_key: Option<&str>,
        max_unattached: u64,
    ) -> Result<Blob> {
        self.transaction(async |connection| {
            add(connection, access, &new, upload_key, max_unattached).await
        })
        .await
    }

    async fn add_blob_of(&self, conversation_id: &str, new: NewBlob) -> Result<()> {
        self.transaction(async |connection| {
            let (object, content) = parts(&new.content);
            let added = sqlx::query(ADD_BLOB_OF)
                .bind(&new.blob.id)
                .bind(conversation_id)
                .bind(&new.blob.media_type)
                .bind(&new.blob.file_name)
                .bind(i64::from(new.blob.bytes))
                .bind(&new.blob.sha256)
                .bind(object)
                .bind(content)
                .bind(now())
                .execute(&mut *connection)
                .await
                .map_err(missing(Missing::Conversation, conversation_id))?;
            if added.rows_affected() == 0 {
                let stored = of_conversation(connection, conversation_id, &new.blob.id).await?;
                return match stored {
                    Some(_) => Ok(()),
                    None => Err(StoreError::not_found(
                        Missing::Conversation,
                        conversation_id,
                    )),
                };
            }
            take_note(connection, object).await
        })
        .await
    }

    async fn uploaded_blob(&self, access: &Access, upload_key: &str) -> Result<Option<Blob>> {
        let query = sqlx::query_as(UPLOADED_BLOB)
            .bind(upload_key)
            .bind(&access.tenant_id)
            .bind(access.owner_id.as_deref().unwrap_or_default());
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn blob(&self, access: &Access, id: &str) -> Result<Option<StoredBlob>> {
        let query = sqlx::query_as(BLOB)
            .bind(id)
            .bind(&access.tenant_id)
            .bind(&access.owner_id);
        let row: Option<BlobRow> = self.read(query.fetch_optional(self.reader())).await?;
        row.map(StoredBlob::try_from).transpose()
    }

    async fn blob_of(&self, conversation_id: &str, id: &str) -> Result<Option<StoredBlob>> {
        let query = sqlx::query_as(BLOB_OF).bind(id).bind(conversation_id);
        let row: Option<BlobRow> = self.read(query.fetch_optional(self.reader())).await?;
        row.map(StoredBlob::try_from).transpose()
    }

    async fn remove_unattached(
        &self,
        tenant_id: Option<&str>,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64> {
        self.transaction(async |connection| {
            let ids: Vec<String> = sqlx::query_scalar(words(LOCK_UNATTACHED))
                .bind(before)
                .bind(tenant_id)
                .bind(i64::from(limit))
                .fetch_all(&mut *connection)
                .await?;
            if ids.is_empty() {
                return Ok(0);
            }
            for text in [NOTE_OBJECTS, REMOVE_BLOBS] {
                sqlx::query(words(text))
                    .bind(list(&ids))
                    .execute(&mut *connection)
                    .await?;
            }
            Ok(ids.len() as u64)
        })
        .await
    }

    async fn note_object(&self, object_key: &str, remove_after: DateTime<Utc>) -> Result<()> {
        let note = sqlx::query(NOTE_OBJECT).bind(object_key).bind(remove_after);
        self.in_time(async {
            note.execute(&mut *self.single().await?).await?;
            Ok(())
        })
        .await
    }

    async fn removed_objects(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<String>> {
        let query = sqlx::query_scalar(REMOVED_OBJECTS)
            .bind(now)
            .bind(i64::from(limit));
        self.read(query.fetch_all(self.reader())).await
    }

    async fn forget_object(&self, object_key: &str) -> Result<()> {
        let forget = sqlx::query(FORGET_OBJECT).bind(object_key);
        self.in_time(async {
            forget.execute(&mut *self.single().await?).await?;
            Ok(())
        })
        .await
    }
}

async fn add(
    connection: &mut Connection,
    access: &Access,
    new: &NewBlob,
    upload_key: Option<&str>,
    max_unattached: u64,
) -> Result<Blob> {
    let owner = access.owner_id.as_deref().unwrap_or_default();
    let (object, content) = parts(&new.content);
    let added = sqlx::query(ADD_BLOB)
        .bind(&new.blob.id)
        .bind(&access.tenant_id)
        .bind(owner)
        .bind(upload_key)
        .bind(&new.blob.media_type)
        .bind(&new.blob.file_name)
        .bind(i64::from(new.blob.bytes))
        .bind(&new.blob.sha256)
        .bind(object)
        .bind(content)
        .bind(now())
        .bind(wide(max_unattached))
        .execute(&mut *connection)
        .await?;
    if added.rows_affected() == 1 {
        take_note(connection, object).await?;
        return Ok(new.blob.clone());
    }
    let stored: Option<Blob> = match upload_key {
        Some(key) => {
            let query = sqlx::query_as(UPLOADED_BLOB)
                .bind(key)
                .bind(&access.tenant_id)
                .bind(owner);
            query.fetch_optional(connection).await?
        }
        None => None,
    };
    match (stored, upload_key) {
        (Some(stored), Some(key)) => new.blob.same_upload(stored, key),
        _ => Err(StoreError::TooManyBlobs {
            limit: max_unattached,
        }),
    }
}

/// Deletes the note that an object is to be removed, because the object's blob is stored now.
async fn take_note(connection: &mut Connection, object: Option<&str>) -> Result<()> {
    let Some(object) = object else { return Ok(()) };
    let taken = sqlx::query(FORGET_OBJECT)
        .bind(object)
        .execute(connection)
        .await?;
    if taken.rows_affected() == 1 {
        return Ok(());
    }
    // The upload took too long, so a sweep may have removed the object.
    Err(StoreError::ObjectsUnavailable(
        "the upload of an object took too long".to_owned(),
    ))
}

async fn of_conversation(
    connection: &mut Connection,
    conversation_id: &str,
    id: &str,
) -> Result<Option<BlobRow>> {
    let query = sqlx::query_as(BLOB_OF).bind(id).bind(conversation_id);
    Ok(query.fetch_optional(connection).await?)
}

/// Returns the columns of a content: the object's key, and the bytes.
fn parts(content: &BlobContent) -> (Option<&str>, Option<&[u8]>) {
    match content {
        BlobContent::Here(bytes) => (None, Some(bytes)),
        BlobContent::Object(key) => (Some(key), None),
    }
}
