-- Removes the messages of conversations.
-- Index: key of messages
--
-- :conversation_ids text[]
DELETE FROM messages
WHERE conversation_id IN (:conversation_ids)
