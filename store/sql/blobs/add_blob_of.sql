-- Inserts a blob of a conversation. The statement inserts no row for a missing conversation, or when the blob is there.
-- Index: key of conversations, key of blobs
--
-- :blob_id text
-- :conversation_id text
-- :media_type text
-- :file_name text
-- :bytes bigint
-- :sha256 text
-- :object_key text?
-- :content bytes?
-- :now timestamp
INSERT INTO blobs (
    id, tenant_id, owner_id, conversation_id, media_type, file_name, bytes, sha256, object_key, content, created_at
)
SELECT
    :blob_id, tenant_id, owner_id, id, :media_type, :file_name, :bytes, :sha256, :object_key, :content, :now
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
ON CONFLICT DO NOTHING
