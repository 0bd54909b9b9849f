-- Images and files. `content` has the bytes, unless they are in an object store under `object_key`. A blob belongs to the
-- conversation whose message or tool result names it, and to its owner; before that to who uploaded it. `upload_key` is the
-- client's key of the upload. A release that knows no blobs removes them with their conversation.
CREATE TABLE blobs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE CASCADE,
    upload_key TEXT COLLATE "C",
    media_type TEXT NOT NULL,
    file_name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    object_key TEXT COLLATE "C",
    content BYTEA,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX blobs_by_conversation ON blobs (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX blobs_unattached ON blobs (tenant_id, created_at) WHERE conversation_id IS NULL;
CREATE UNIQUE INDEX blobs_by_upload ON blobs (tenant_id, owner_id, upload_key) WHERE upload_key IS NOT NULL;

-- Objects that are to be removed from the object store, and from when on: those whose blobs are gone, and those that an
-- upload was about to write.
CREATE TABLE removed_objects (
    object_key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    remove_after TIMESTAMPTZ NOT NULL
);
CREATE INDEX removed_objects_due ON removed_objects (remove_after);

-- The blobs that a user's message names, with what models and readers are told of them.
ALTER TABLE messages ADD COLUMN attachments JSONB NOT NULL DEFAULT '[]';
