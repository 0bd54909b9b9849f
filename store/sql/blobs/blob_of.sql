-- Selects a blob of a conversation, with its bytes or its object.
-- Index: key of blobs
--
-- :blob_id text
-- :conversation_id text
SELECT id, media_type, file_name, bytes, sha256, object_key, content
FROM blobs
WHERE id = :blob_id AND conversation_id = :conversation_id
