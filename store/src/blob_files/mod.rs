//! Images and files: their rows are in the database, and their bytes there or in an object store.
//!
//! - `objects.rs`: the port to an object store; `s3.rs`: any store that speaks S3
//! - `media.rs`: whether bytes are what their media type says
//!
//! An object is noted as one to be removed before it is written, and its row is stored with the note taken away. So no
//! object is left over, whoever dies between. The rows of a removed conversation leave such notes, too.

mod media;
mod objects;
mod s3;

use std::{collections::BTreeSet, fmt::Write, sync::Arc, time::Duration};

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

/// A blob that no message names is kept for so long: a person may leave a message half written over night.
const KEPT_UNATTACHED: TimeDelta = TimeDelta::days(1);
/// An object without a blob is removed when it is so old. Its upload is over by then ([`PUT_LIMIT`]).
const OBJECT_GRACE: TimeDelta = TimeDelta::hours(1);
/// How long an object may take to be written or read: ten megabytes over a slow line.
const PUT_LIMIT: Duration = Duration::from_secs(60);
/// The most blobs or objects that are removed at once, so that nobody waits long.
const REMOVED_AT_ONCE: u32 = 100;
/// The most that an upload removes of what its tenant has left over: more than one, so that their number falls.
const REMOVED_WITH_UPLOAD: u32 = 10;
/// The longest name of a file, in bytes: that of most file systems.
const MAX_FILE_NAME: usize = 255;

/// What may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRules {
    /// Bytes of one blob. Default 10 MiB: a photograph of a phone, and less than providers of models take.
    pub max_bytes: usize,
    /// Blobs that one message names. Default 10.
    pub max_per_message: usize,
    /// Bytes of the blobs that one message names. Default 20 MiB: with base64 it fits into the 32 MB that a request may have
    /// at the strictest provider.
    pub max_message_bytes: u64,
    /// Bytes of a tenant that no message names. Default 200 MiB: ten messages that are being written.
    pub max_unattached_bytes: u64,
    /// The media types that are taken. Default: PNG, JPEG, GIF, WebP, PDF, plain text, Markdown, CSV and JSON.
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
    /// What its sender says that it is. Parameters are left out.
    pub media_type: String,
    /// Its name; may be empty. What no file name has is left out.
    pub file_name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A stored file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFile {
    /// What is known of it.
    pub blob: Blob,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Why a file is not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] RefusedBlob),
    /// The store cannot, or may not.
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
    /// Files whose new bytes go to `objects`; without it to the database. What is in the database is read either way.
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

    /// What may be stored.
    pub fn rules(&self) -> &BlobRules {
        &self.rules
    }

    /// Stores a file for a caller. It belongs to no conversation until a message names it. The same `key` again is the
    /// same file.
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

    /// Stores a file that a tool gave, for its conversation. The same file of the same `origin` is stored once.
    pub async fn keep(
        &self,
        conversation_id: &str,
        origin: &str,
        upload: Upload,
    ) -> Result<Blob, UploadError> {
        let (blob, bytes) = self.checked(String::new(), upload)?;
        let id = hex(&Sha256::digest(format!("{origin}\n{}", blob.sha256)));
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

    /// Returns a file that the caller may see; `None` when there is none.
    pub async fn file(&self, access: &Access, id: &str) -> Result<Option<BlobFile>> {
        let stored = self.rows.blob(access, id).await?;
        self.with_bytes(stored).await
    }

    /// Returns a file of a conversation; `None` when there is none.
    pub async fn file_of(&self, conversation_id: &str, id: &str) -> Result<Option<BlobFile>> {
        let stored = self.rows.blob_of(conversation_id, id).await?;
        self.with_bytes(stored).await
    }

    /// Removes what was uploaded a day ago and that no message names. Returns how many.
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

    /// Removes the objects whose blobs are gone. Returns how many. Without an object store they are left noted.
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

    /// Checks a file by the rules, and says what is known of it.
    fn checked(&self, id: String, upload: Upload) -> Result<(Blob, Vec<u8>), RefusedBlob> {
        let media_type = media::essence(&upload.media_type);
        media::check(&media_type, &upload.bytes, &self.rules)?;
        let blob = Blob {
            id,
            media_type,
            file_name: file_name(&upload.file_name),
            bytes: u32::try_from(upload.bytes.len()).unwrap_or(u32::MAX),
            sha256: hex(&Sha256::digest(&upload.bytes)),
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
            Some(bytes) if hex(&Sha256::digest(&bytes)) == blob.sha256 => {
                Ok(Some(BlobFile { blob, bytes }))
            }
            Some(_) => {
                let message = format!(
                    "the bytes of blob `{}` are not those that were stored",
                    blob.id
                );
                Err(StoreError::Corrupt(message))
            }
            None => Ok(None),
        }
    }
}

impl Blob {
    /// Returns what is stored, when it is this file; else an error, because the client's key was used for another one.
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

/// A name as it is kept: without a path, without control characters, and not too long.
fn file_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name: String = last.chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_FILE_NAME {
        name.pop();
    }
    name.trim().to_owned()
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _infallible = write!(digits, "{byte:02x}");
    }
    digits
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
