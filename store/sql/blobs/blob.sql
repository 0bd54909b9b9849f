-- Selects a blob that the caller may see, with its bytes or its object. The blob of a hidden conversation is gone for
-- callers (`removal/hide_conversation.sql`).
-- Index: key of blobs, key of conversations
--
-- :blob_id text
-- :tenant_id text
-- :owner_id text?
SELECT id, media_type, file_name, bytes, sha256, object_key, content
FROM blobs
WHERE id = :blob_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = blobs.conversation_id AND c.tenant_id = '')
