//! Images and files: what is stored of them beside their bytes, and the bytes where they are in the database.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::event::Attachment;

use super::{Access, Result};

/// The rows of blobs. [`BlobFiles`](crate::BlobFiles) puts them and an object store together.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores an uploaded blob, which belongs to no conversation yet. When the client's key was used before for the same
    /// content, returns what is stored. Errors: [`OtherContent`](crate::StoreError::OtherContent) when it was used for
    /// another content, [`TooManyBlobs`](crate::StoreError::TooManyBlobs) when the tenant has uploaded more than
    /// `max_unattached` bytes that no message names. Uploads at the same instant may pass that limit together.
    async fn add_blob(
        &self,
        access: &Access,
        new: NewBlob,
        upload_key: Option<&str>,
        max_unattached: u64,
    ) -> Result<Blob>;

    /// Stores a blob of a conversation. The same id again changes nothing. Errors:
    /// [`NotFound`](crate::StoreError::NotFound) when the conversation is gone.
    async fn add_blob_of(&self, conversation_id: &str, new: NewBlob) -> Result<()>;

    /// Returns what the caller has uploaded with this key.
    async fn uploaded_blob(&self, access: &Access, upload_key: &str) -> Result<Option<Blob>>;

    /// Returns a blob that the caller may see.
    async fn blob(&self, access: &Access, id: &str) -> Result<Option<StoredBlob>>;

    /// Returns a blob of a conversation.
    async fn blob_of(&self, conversation_id: &str, id: &str) -> Result<Option<StoredBlob>>;

    /// Removes at most `limit` blobs that were uploaded before this time and that no message names; of one tenant, when
    /// it is given. Returns how many.
    async fn remove_unattached(
        &self,
        tenant_id: Option<&str>,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64>;

    /// Notes that an object is to be removed when its blob is not stored by then. It is noted before the object is
    /// written, so that none is left when the writer dies. Storing the blob takes the note away.
    async fn note_object(&self, object_key: &str, remove_after: DateTime<Utc>) -> Result<()>;

    /// Returns objects that are to be removed now, the oldest first.
    async fn removed_objects(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<String>>;

    /// Notes that an object was removed.
    async fn forget_object(&self, object_key: &str) -> Result<()>;
}

/// What is known of a blob without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Blob {
    /// Its id: `blob_…`.
    pub id: String,
    /// Its media type, without parameters.
    pub media_type: String,
    /// The name that the file was given; may be empty.
    pub file_name: String,
    /// Its length.
    #[sqlx(try_from = "i64")]
    pub bytes: u32,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// A blob to store.
#[derive(Debug, Clone)]
pub struct NewBlob {
    /// What is known of it.
    pub blob: Blob,
    /// Where its bytes are.
    pub content: BlobContent,
}

/// Where the bytes of a blob are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobContent {
    /// The bytes are in the database, and these are they.
    Here(Vec<u8>),
    /// The bytes are in an object store, under this key.
    Object(String),
}

/// A blob as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// What is known of it.
    pub blob: Blob,
    /// Where its bytes are.
    pub content: BlobContent,
}

impl Blob {
    /// What models and readers are told of it.
    pub fn attachment(&self) -> Attachment {
        Attachment {
            blob_id: self.id.clone(),
            media_type: self.media_type.clone(),
            file_name: self.file_name.clone(),
            bytes: self.bytes,
        }
    }
}
