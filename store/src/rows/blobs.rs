//! Rows of blobs.

use sqlx::FromRow;

use crate::{
    api::{Blob, BlobContent, StoredBlob},
    error::StoreError,
};

/// A blob with the bytes, or with the key of an object.
#[derive(FromRow)]
pub(crate) struct BlobRow {
    #[sqlx(flatten)]
    blob: Blob,
    object_key: Option<String>,
    content: Option<Vec<u8>>,
}

impl TryFrom<BlobRow> for StoredBlob {
    type Error = StoreError;

    fn try_from(row: BlobRow) -> Result<Self, StoreError> {
        let content = match (row.object_key, row.content) {
            (Some(key), _) => BlobContent::Object(key),
            (None, Some(bytes)) => BlobContent::Here(bytes),
            (None, None) => {
                let message = format!("the blob `{}` has neither bytes nor an object", row.blob.id);
                return Err(StoreError::Corrupt(message));
            }
        };
        Ok(Self {
            blob: row.blob,
            content,
        })
    }
}
