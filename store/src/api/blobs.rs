//! Images and files: their metadata, and their bytes if the bytes are in the database.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::event::Attachment;

use super::{Access, Result};

/// The rows of blobs. [`BlobFiles`](crate::BlobFiles) combines the rows with an object store.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores an uploaded blob, which belongs to no conversation yet. A repeated upload with the client's key and equal
    /// content returns the stored blob. Errors: [`OtherContent`](crate::StoreError::OtherContent) for a key with
    /// different content, [`TooManyBlobs`](crate::StoreError::TooManyBlobs) for a tenant with more than
    /// `max_unattached` uploaded bytes without a message. Parallel uploads may exceed the limit together.
    async fn add_blob(
        &self,
        access: &Access,
        new: NewBlob,
        upload_key: Option<&str>,
        max_unattached: u64,
    ) -> Result<Blob>;

    /// Stores a blob of a conversation. Storing a known id changes no row. Errors:
    /// [`NotFound`](crate::StoreError::NotFound) for a removed conversation.
    async fn add_blob_of(&self, conversation_id: &str, new: NewBlob) -> Result<()>;

    /// Returns the caller's upload with the key.
    async fn uploaded_blob(&self, access: &Access, upload_key: &str) -> Result<Option<Blob>>;

    /// Returns a blob that is visible to the caller.
    async fn blob(&self, access: &Access, id: &str) -> Result<Option<StoredBlob>>;

    /// Returns a blob of a conversation.
    async fn blob_of(&self, conversation_id: &str, id: &str) -> Result<Option<StoredBlob>>;

    /// Removes at most `limit` blobs without a message that were uploaded before `before`. `tenant_id` limits the
    /// removal to one tenant. Returns the number of removed blobs.
    async fn remove_unattached(
        &self,
        tenant_id: Option<&str>,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64>;

    /// Notes an object for removal after `remove_after`. The caller writes the note before the object, therefore a
    /// crash leaves no unknown object. Storing the blob deletes the note.
    async fn note_object(&self, object_key: &str, remove_after: DateTime<Utc>) -> Result<()>;

    /// Returns the keys of objects due for removal, the oldest first.
    async fn removed_objects(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<String>>;

    /// Deletes the note of a removed object.
    async fn forget_object(&self, object_key: &str) -> Result<()>;
}

/// A blob's metadata, without the bytes.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Blob {
    /// The id: `blob_…`.
    pub id: String,
    /// The media type, without parameters.
    pub media_type: String,
    /// The file's name; may be empty.
    pub file_name: String,
    /// The length in bytes.
    #[sqlx(try_from = "i64")]
    pub bytes: u32,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
}

/// A blob to store.
#[derive(Debug, Clone)]
pub struct NewBlob {
    /// The metadata.
    pub blob: Blob,
    /// The bytes, or the key of the object.
    pub content: BlobContent,
}

/// The bytes of a blob, or their address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobContent {
    /// The bytes, read from the database.
    Here(Vec<u8>),
    /// The key of the bytes in the object store.
    Object(String),
}

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// The metadata.
    pub blob: Blob,
    /// The bytes, or the key of the object.
    pub content: BlobContent,
}

impl Blob {
    /// Returns the blob's description for models and readers.
    pub fn attachment(&self) -> Attachment {
        Attachment {
            blob_id: self.id.clone(),
            media_type: self.media_type.clone(),
            file_name: self.file_name.clone(),
            bytes: self.bytes,
        }
    }
}
