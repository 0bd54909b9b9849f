//! The port to an object store.

use async_trait::async_trait;

use crate::api::Result;

/// Keeps bytes under keys. Every error is [`StoreError::ObjectsUnavailable`](crate::StoreError::ObjectsUnavailable), after
/// which the same call may succeed.
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// Returns the key of a blob's object.
    fn key_of(&self, blob_id: &str) -> String;

    /// Writes an object, also over one that is there.
    async fn put(&self, key: &str, bytes: Vec<u8>, media_type: &str) -> Result<()>;

    /// Reads an object that has so many bytes; `None` when there is none.
    async fn get(&self, key: &str, bytes: u32) -> Result<Option<Vec<u8>>>;

    /// Removes an object. One that is not there is no error.
    async fn remove(&self, key: &str) -> Result<()>;
}
