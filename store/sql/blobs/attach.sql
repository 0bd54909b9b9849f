-- Attaches blobs to a conversation that the caller has locked. The statement returns the blobs that belong to the
-- conversation now.
-- Index: key of blobs, blobs_unattached, blobs_by_conversation, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :blob_ids text[]
UPDATE blobs
SET conversation_id = :conversation_id,
    owner_id = (SELECT c.owner_id FROM conversations c WHERE c.id = :conversation_id)
WHERE tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    AND (conversation_id IS NULL OR conversation_id = :conversation_id)
    AND id IN (:blob_ids)
RETURNING id, media_type, file_name, bytes, sha256
