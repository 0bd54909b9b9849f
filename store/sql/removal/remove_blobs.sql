-- Removes the blobs of conversations.
-- Index: blobs_by_conversation
--
-- :conversation_ids text[]
DELETE FROM blobs
WHERE conversation_id IN (:conversation_ids)
