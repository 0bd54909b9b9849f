-- Counts the notes of a deleted conversation: 1 or 0.
-- Index: key of deleted_conversations
--
-- :conversation_id text
SELECT COUNT(*)
FROM deleted_conversations
WHERE id = :conversation_id
