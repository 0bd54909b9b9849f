-- Selects a page of the blobs of a hidden conversation.
-- Index: blobs_by_conversation
--
-- :conversation_id text
-- :row_limit bigint
SELECT id
FROM blobs
WHERE conversation_id = :conversation_id
LIMIT :row_limit
