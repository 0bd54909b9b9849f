-- Images and files. `content` has the bytes, unless they are in an object store under `object_key`. A blob belongs to the
-- conversation whose message or tool result names it, and to its owner; before that to who uploaded it. `upload_key` is the
-- client's key of the upload. A release that knows no blobs removes them with their conversation.
CREATE TABLE blobs (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL DEFAULT '',
    conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
    upload_key TEXT,
    media_type TEXT NOT NULL,
    file_name TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    object_key TEXT,
    content BLOB,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX blobs_by_conversation ON blobs (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX blobs_unattached ON blobs (tenant_id, created_at) WHERE conversation_id IS NULL;
CREATE UNIQUE INDEX blobs_by_upload ON blobs (tenant_id, owner_id, upload_key) WHERE upload_key IS NOT NULL;

-- Objects that are to be removed from the object store, and from when on: those whose blobs are gone, and those that an
-- upload was about to write.
CREATE TABLE removed_objects (
    object_key TEXT NOT NULL PRIMARY KEY,
    remove_after TEXT NOT NULL
) STRICT;
CREATE INDEX removed_objects_due ON removed_objects (remove_after);

-- The blobs that a user's message names, with what models and readers are told of them.
ALTER TABLE messages ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';
