//! The trait of an object store.

use async_trait::async_trait;

use crate::api::Result;

/// Keeps bytes under keys. A failed call returns
/// [`StoreError::ObjectsUnavailable`](crate::StoreError::ObjectsUnavailable), and a repeated call may succeed. An
/// object with too many bytes is [`StoreError::Corrupt`](crate::StoreError::Corrupt).
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// Returns the key of a blob's object.
    fn key_of(&self, blob_id: &str) -> String;

    /// Writes an object, and overwrites an existing object.
    async fn put(&self, key: &str, bytes: Vec<u8>, media_type: &str) -> Result<()>;

    /// Reads an object of `bytes` bytes; `None` for a missing object.
    async fn get(&self, key: &str, bytes: u32) -> Result<Option<Vec<u8>>>;

    /// Removes an object. Removing a missing object is no error.
    async fn remove(&self, key: &str) -> Result<()>;
}
