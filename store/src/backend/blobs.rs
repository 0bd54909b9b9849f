//! Blobs: rows with bytes or with the key of an object, and the list of objects to be removed.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Connection, Database, missing,
    statement::Statement as _,
    statements::blobs::{
        AddBlob, AddBlobOf, Blob as SelectBlob, BlobOf, ForgetObject, LockUnattached, NoteObject,
        NoteObjects, RemoveBlobs, RemovedObjects, UploadedBlob,
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
            let add = AddBlobOf {
                blob_id: &new.blob.id,
                conversation_id,
                media_type: &new.blob.media_type,
                file_name: &new.blob.file_name,
                bytes: i64::from(new.blob.bytes),
                sha256: &new.blob.sha256,
                object_key: object,
                content,
                now: now(),
            };
            let added = add.query()?.execute(&mut *connection).await;
            let added = added.map_err(missing(Missing::Conversation, conversation_id))?;
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
        let query = uploaded(access, upload_key).query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn blob(&self, access: &Access, id: &str) -> Result<Option<StoredBlob>> {
        let select = SelectBlob {
            blob_id: id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
        };
        let query = select.query_as()?;
        let row: Option<BlobRow> = self.read(query.fetch_optional(self.reader())).await?;
        row.map(StoredBlob::try_from).transpose()
    }

    async fn blob_of(&self, conversation_id: &str, id: &str) -> Result<Option<StoredBlob>> {
        let query = BlobOf {
            blob_id: id,
            conversation_id,
        }
        .query_as()?;
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
            let lock = LockUnattached {
                before,
                tenant_id,
                row_limit: i64::from(limit),
            };
            let ids: Vec<String> = lock.query_scalar()?.fetch_all(&mut *connection).await?;
            if ids.is_empty() {
                return Ok(0);
            }
            let note = NoteObjects { blob_ids: &ids };
            note.query()?.execute(&mut *connection).await?;
            let remove = RemoveBlobs { blob_ids: &ids };
            remove.query()?.execute(&mut *connection).await?;
            Ok(ids.len() as u64)
        })
        .await
    }

    async fn note_object(&self, object_key: &str, remove_after: DateTime<Utc>) -> Result<()> {
        let note = NoteObject {
            object_key,
            remove_after,
        }
        .query()?;
        self.in_time(async {
            note.execute(&mut *self.single().await?).await?;
            Ok(())
        })
        .await
    }

    async fn removed_objects(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<String>> {
        let select = RemovedObjects {
            now,
            row_limit: i64::from(limit),
        };
        let query = select.query_scalar()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn forget_object(&self, object_key: &str) -> Result<()> {
        let forget = ForgetObject { object_key }.query()?;
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
    let (object, content) = parts(&new.content);
    let add = AddBlob {
        blob_id: &new.blob.id,
        tenant_id: &access.tenant_id,
        owner: access.owner_id.as_deref().unwrap_or_default(),
        upload_key,
        media_type: &new.blob.media_type,
        file_name: &new.blob.file_name,
        bytes: i64::from(new.blob.bytes),
        sha256: &new.blob.sha256,
        object_key: object,
        content,
        now: now(),
        max_unattached: wide(max_unattached),
    };
    let added = add.query()?.execute(&mut *connection).await?;
    if added.rows_affected() == 1 {
        take_note(connection, object).await?;
        return Ok(new.blob.clone());
    }
    let stored: Option<Blob> = match upload_key {
        Some(key) => {
            let query = uploaded(access, key).query_as()?;
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
    let forget = ForgetObject { object_key: object };
    let taken = forget.query()?.execute(connection).await?;
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
    let query = BlobOf {
        blob_id: id,
        conversation_id,
    }
    .query_as()?;
    Ok(query.fetch_optional(connection).await?)
}

fn uploaded<'a>(access: &'a Access, upload_key: &'a str) -> UploadedBlob<'a> {
    UploadedBlob {
        upload_key,
        tenant_id: &access.tenant_id,
        owner: access.owner_id.as_deref().unwrap_or_default(),
    }
}

/// Returns the columns of a content: the object's key, and the bytes.
fn parts(content: &BlobContent) -> (Option<&str>, Option<&[u8]>) {
    match content {
        BlobContent::Here(bytes) => (None, Some(bytes)),
        BlobContent::Object(key) => (Some(key), None),
    }
}
