//! Texts about blobs. The rows are few and small, except for a blob's bytes, which are read one blob at a time.

use super::SqlText;

/// The columns of a [`StoredBlob`](crate::StoredBlob).
macro_rules! stored_blob {
    () => {
        "SELECT id, media_type, file_name, bytes, sha256, object_key, content FROM blobs WHERE "
    };
}

/// The condition: the caller with tenant `$2` and owner `$3` may see a blob.
macro_rules! visible_blob {
    () => {
        "tenant_id = $2 AND (CAST($3 AS TEXT) IS NULL OR owner_id = $3)"
    };
}

/// `$1` id, `$2` tenant, `$3` owner or an empty text, `$4` the client's key, `$5` media type, `$6` file name, `$7`
/// bytes, `$8` SHA-256, `$9` object, `$10` content, `$11` now, `$12` the tenant's limit for the bytes of blobs without
/// a conversation. Inserts no row for a used key, or when the tenant would exceed the limit.
pub(crate) const ADD_BLOB: &str = "INSERT INTO blobs (id, tenant_id, owner_id, upload_key, media_type, file_name, \
     bytes, sha256, object_key, content, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 \
     WHERE (SELECT COALESCE(SUM(bytes), 0) FROM blobs WHERE tenant_id = $2 AND conversation_id IS NULL) + $7 <= $12 \
     ON CONFLICT DO NOTHING";

/// `$1` id, `$2` conversation, `$3` media type, `$4` file name, `$5` bytes, `$6` SHA-256, `$7` object, `$8` content, `$9`
/// now.
pub(crate) const ADD_BLOB_OF: &str = "INSERT INTO blobs (id, tenant_id, owner_id, conversation_id, media_type, \
     file_name, bytes, sha256, object_key, content, created_at) \
     SELECT $1, tenant_id, owner_id, id, $3, $4, $5, $6, $7, $8, $9 FROM conversations WHERE id = $2 \
     ON CONFLICT DO NOTHING";

/// `$1` the client's key, `$2` tenant, `$3` owner or an empty text.
pub(crate) const UPLOADED_BLOB: &str = "SELECT id, media_type, file_name, bytes, sha256 FROM blobs \
     WHERE upload_key = $1 AND tenant_id = $2 AND owner_id = $3";

/// `$1` id, `$2` tenant, `$3` owner or none.
pub(crate) const BLOB: &str = concat!(stored_blob!(), "id = $1 AND ", visible_blob!());

/// `$1` id, `$2` conversation.
pub(crate) const BLOB_OF: &str = concat!(stored_blob!(), "id = $1 AND conversation_id = $2");

/// `$1` conversation, `$2` tenant, `$3` owner or none, `$4` list of ids. Attaches blobs to a conversation that the
/// caller has locked. Returns the blobs that belong to the conversation now.
pub(crate) const ATTACH: SqlText = among!(
    concat!(
        "UPDATE blobs SET conversation_id = $1, owner_id = (SELECT c.owner_id FROM conversations c WHERE c.id = $1) \
         WHERE ",
        visible_blob!(),
        " AND (conversation_id IS NULL OR conversation_id = $1) AND id"
    ),
    "$4",
    " RETURNING id, media_type, file_name, bytes, sha256"
);

/// `$1` conversation, `$2` list of ids. Detaches the blobs that no message of the conversation refers to.
pub(crate) const DETACH: SqlText = among!(
    "UPDATE blobs SET conversation_id = NULL WHERE conversation_id = $1 AND NOT EXISTS (SELECT 1 FROM messages m \
     WHERE m.conversation_id = $1 AND CAST(m.attachments AS TEXT) LIKE '%' || blobs.id || '%') AND id",
    "$2",
    ""
);

macro_rules! unattached {
    () => {
        "SELECT id FROM blobs WHERE conversation_id IS NULL AND created_at < $1 \
         AND (CAST($2 AS TEXT) IS NULL OR tenant_id = $2) ORDER BY created_at LIMIT $3"
    };
}

/// `$1` before, `$2` tenant or none, `$3` limit. Skips a blob that a concurrent message is about to attach.
pub(crate) const LOCK_UNATTACHED: SqlText = SqlText {
    sqlite: unattached!(),
    postgres: concat!(unattached!(), " FOR UPDATE SKIP LOCKED"),
};

/// `$1` list of ids. Notes the objects of blobs that the transaction removes.
pub(crate) const NOTE_OBJECTS: SqlText = among!(
    "INSERT INTO removed_objects (object_key, remove_after) SELECT object_key, created_at FROM blobs \
     WHERE object_key IS NOT NULL AND id",
    "$1",
    " ON CONFLICT DO NOTHING"
);

/// `$1` list of ids.
pub(crate) const REMOVE_BLOBS: SqlText = among!("DELETE FROM blobs WHERE id", "$1", "");

/// `$1` object, `$2` time of removal.
pub(crate) const NOTE_OBJECT: &str = "INSERT INTO removed_objects (object_key, remove_after) VALUES ($1, $2) \
     ON CONFLICT (object_key) DO UPDATE SET remove_after = excluded.remove_after";

/// `$1` now, `$2` limit.
pub(crate) const REMOVED_OBJECTS: &str = "SELECT object_key FROM removed_objects WHERE remove_after <= $1 ORDER BY remove_after LIMIT $2";

/// `$1` object.
pub(crate) const FORGET_OBJECT: &str = "DELETE FROM removed_objects WHERE object_key = $1";
