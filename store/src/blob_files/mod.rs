//! Images and files: the rows are in the database, the bytes in the database or in an object store.
//!
//! - `objects.rs`: the trait of an object store; `s3.rs`: any store that speaks S3
//! - `media.rs`: whether bytes match their media type
//!
//! Before the upload of an object, the database notes the object for removal. The transaction that stores the blob's
//! row deletes the note. After a crash in between, the note remains and the object is removed later. Removing a
//! conversation notes its objects, too.

mod media;
mod objects;
mod s3;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{TimeDelta, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use self::{
    media::RefusedBlob,
    objects::ObjectStore,
    s3::{S3Config, S3Store},
};
use crate::{
    api::{Access, Blob, BlobContent, Blobs, NewBlob, Result, StoredBlob},
    error::StoreError,
};

/// A blob without a message is kept for a day, because a person may leave a half-written message over night.
const KEPT_UNATTACHED: TimeDelta = TimeDelta::days(1);
/// An object without a blob is removed after an hour. The upload is over by then ([`PUT_LIMIT`]).
const OBJECT_GRACE: TimeDelta = TimeDelta::hours(1);
/// The time limit for writing or reading an object: ten megabytes over a slow line.
const PUT_LIMIT: Duration = Duration::from_secs(60);
/// The largest number of blobs or objects in one removal. A small number keeps waits short.
const REMOVED_AT_ONCE: u32 = 100;
/// The largest number of the tenant's old blobs that an upload removes. An upload adds one blob and removes several,
/// therefore old blobs become fewer.
const REMOVED_WITH_UPLOAD: u32 = 10;
/// The longest file name, in bytes: the limit of most file systems.
const MAX_FILE_NAME: usize = 255;

/// The rules for stored files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRules {
    /// The largest blob, in bytes. Default 10 MiB: a photograph from a phone, and below the limits of model providers.
    pub max_bytes: usize,
    /// The most blobs of one message. Default 10.
    pub max_per_message: usize,
    /// The most bytes of one message's blobs. Default 20 MiB: in base64, the blobs fit into a request of 32 MB, the
    /// limit of the strictest provider.
    pub max_message_bytes: u64,
    /// A tenant's most bytes without a message. Default 200 MiB: the attachments of ten unsent messages.
    pub max_unattached_bytes: u64,
    /// The allowed media types. Default: PNG, JPEG, GIF, WebP, PDF, plain text, Markdown, CSV and JSON.
    pub types: BTreeSet<String>,
}

impl Default for BlobRules {
    fn default() -> Self {
        Self {
            max_bytes: 10 * 1024 * 1024,
            max_per_message: 10,
            max_message_bytes: 20 * 1024 * 1024,
            max_unattached_bytes: 200 * 1024 * 1024,
            types: media::TYPES.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// A file to store.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The media type that the client declared. Parameters are removed.
    pub media_type: String,
    /// The file name; may be empty. Characters that no file name has are removed.
    pub file_name: String,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// A stored file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFile {
    /// The blob's metadata.
    pub blob: Blob,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// Why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The rules refuse the file.
    #[error(transparent)]
    Refused(#[from] RefusedBlob),
    /// The store failed or refused the file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stores and reads images and files. Cheap to clone.
#[derive(Clone)]
pub struct BlobFiles {
    rows: Arc<dyn Blobs>,
    objects: Option<Arc<dyn ObjectStore>>,
    rules: Arc<BlobRules>,
}

impl BlobFiles {
    /// Makes a service that writes new bytes to `objects`, or to the database without `objects`. The service always
    /// reads the bytes in the database.
    pub fn new(
        rows: Arc<dyn Blobs>,
        objects: Option<Arc<dyn ObjectStore>>,
        rules: BlobRules,
    ) -> Self {
        Self {
            rows,
            objects,
            rules: Arc::new(rules),
        }
    }

    /// The rules for stored files.
    pub fn rules(&self) -> &BlobRules {
        &self.rules
    }

    /// Stores a file for a caller. The file belongs to no conversation until a message names it. A repeated call with
    /// an equal `key` returns the stored file.
    pub async fn upload(
        &self,
        access: &Access,
        upload: Upload,
        key: Option<&str>,
    ) -> Result<Blob, UploadError> {
        let id = format!("blob_{}", Uuid::now_v7().simple());
        let (blob, bytes) = self.checked(id, upload)?;
        if let Some(key) = key
            && let Some(stored) = self.rows.uploaded_blob(access, key).await?
        {
            return Ok(blob.same_upload(stored, key)?);
        }
        let tenant = Some(access.tenant_id.as_str());
        let old = Utc::now() - KEPT_UNATTACHED;
        let removing = self
            .rows
            .remove_unattached(tenant, old, REMOVED_WITH_UPLOAD);
        removing.await?;
        let content = self.put(&blob, bytes).await?;
        let new = NewBlob { blob, content };
        let most = self.rules.max_unattached_bytes;
        Ok(self.rows.add_blob(access, new, key, most).await?)
    }

    /// Stores a file from a tool for the tool's conversation. A repeated call with an equal file and an equal `origin`
    /// stores the file once.
    pub async fn keep(
        &self,
        conversation_id: &str,
        origin: &str,
        upload: Upload,
    ) -> Result<Blob, UploadError> {
        let (blob, bytes) = self.checked(String::new(), upload)?;
        let id = hex::encode(Sha256::digest(format!("{origin}\n{}", blob.sha256)));
        let blob = Blob {
            id: format!("blob_{}", &id[..32]),
            ..blob
        };
        if self
            .rows
            .blob_of(conversation_id, &blob.id)
            .await?
            .is_some()
        {
            return Ok(blob);
        }
        let content = self.put(&blob, bytes).await?;
        let new = NewBlob {
            blob: blob.clone(),
            content,
        };
        self.rows.add_blob_of(conversation_id, new).await?;
        Ok(blob)
    }

    /// Returns a file that is visible to the caller; `None` for a missing file.
    pub async fn file(&self, access: &Access, id: &str) -> Result<Option<BlobFile>> {
        let stored = self.rows.blob(access, id).await?;
        self.with_bytes(stored).await
    }

    /// Returns a conversation's file; `None` for a missing file.
    pub async fn file_of(&self, conversation_id: &str, id: &str) -> Result<Option<BlobFile>> {
        let stored = self.rows.blob_of(conversation_id, id).await?;
        self.with_bytes(stored).await
    }

    /// Removes uploads that are older than a day and have no message. Returns their number.
    pub async fn remove_unattached(&self) -> Result<u64> {
        let (before, mut removed) = (Utc::now() - KEPT_UNATTACHED, 0);
        loop {
            let some = self
                .rows
                .remove_unattached(None, before, REMOVED_AT_ONCE)
                .await?;
            removed += some;
            if some < u64::from(REMOVED_AT_ONCE) {
                return Ok(removed);
            }
        }
    }

    /// Removes the objects of removed blobs. Returns their number. Without an object store, the notes stay in the
    /// database.
    pub async fn remove_objects(&self) -> Result<u64> {
        let mut removed = 0;
        let Some(objects) = &self.objects else {
            return Ok(0);
        };
        loop {
            let keys = self
                .rows
                .removed_objects(Utc::now(), REMOVED_AT_ONCE)
                .await?;
            for key in &keys {
                objects.remove(key).await?;
                self.rows.forget_object(key).await?;
                removed += 1;
            }
            if keys.len() < REMOVED_AT_ONCE as usize {
                return Ok(removed);
            }
        }
    }

    /// Checks a file against the rules, and returns its metadata and bytes.
    fn checked(&self, id: String, upload: Upload) -> Result<(Blob, Vec<u8>), RefusedBlob> {
        let media_type = media::essence(&upload.media_type);
        media::check(&media_type, &upload.bytes, &self.rules)?;
        let blob = Blob {
            id,
            media_type,
            file_name: file_name(&upload.file_name),
            bytes: u32::try_from(upload.bytes.len()).unwrap_or(u32::MAX),
            sha256: hex::encode(Sha256::digest(&upload.bytes)),
        };
        Ok((blob, upload.bytes))
    }

    async fn put(&self, blob: &Blob, bytes: Vec<u8>) -> Result<BlobContent> {
        let Some(objects) = &self.objects else {
            return Ok(BlobContent::Here(bytes));
        };
        let key = objects.key_of(&blob.id);
        self.rows
            .note_object(&key, Utc::now() + OBJECT_GRACE)
            .await?;
        objects.put(&key, bytes, &blob.media_type).await?;
        Ok(BlobContent::Object(key))
    }

    async fn with_bytes(&self, stored: Option<StoredBlob>) -> Result<Option<BlobFile>> {
        let Some(StoredBlob { blob, content }) = stored else {
            return Ok(None);
        };
        let bytes = match (content, &self.objects) {
            (BlobContent::Here(bytes), _) => Some(bytes),
            (BlobContent::Object(key), Some(objects)) => objects.get(&key, blob.bytes).await?,
            (BlobContent::Object(_), None) => {
                let message =
                    "the blob is in an object store, and [blobs] of the configuration names none";
                return Err(StoreError::ObjectsUnavailable(message.to_owned()));
            }
        };
        match bytes {
            Some(bytes) if hex::encode(Sha256::digest(&bytes)) == blob.sha256 => {
                Ok(Some(BlobFile { blob, bytes }))
            }
            Some(_) => {
                let message = format!(
                    "the bytes of blob `{}` differ from the stored bytes",
                    blob.id
                );
                Err(StoreError::Corrupt(message))
            }
            None => Ok(None),
        }
    }
}

impl Blob {
    /// Returns the stored blob, if `self` has equal content. Returns an error for different content, because the client
    /// reused its key.
    pub(crate) fn same_upload(&self, stored: Self, key: &str) -> Result<Self> {
        let is_same = stored.sha256 == self.sha256
            && stored.media_type == self.media_type
            && stored.file_name == self.file_name;
        if is_same {
            return Ok(stored);
        }
        Err(StoreError::OtherContent {
            client_message_id: key.to_owned(),
        })
    }
}

/// Returns a file name without path and control characters, cut to [`MAX_FILE_NAME`].
fn file_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name: String = last.chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_FILE_NAME {
        name.pop();
    }
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_path() {
        assert_eq!(file_name("../../etc/passwd"), "passwd");
        assert_eq!(file_name("C:\\x\\a b.png"), "a b.png");
        assert_eq!(file_name("a\r\nSet-Cookie: x"), "aSet-Cookie: x");
        assert_eq!(file_name(&"ü".repeat(300)).len(), 254);
    }
}
