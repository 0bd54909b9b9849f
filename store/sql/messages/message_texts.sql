-- Selects the texts of messages.
-- Index: key of messages
--
-- :conversation_id text
-- :message_ids text[]
SELECT id, content
FROM messages
WHERE conversation_id = :conversation_id AND id IN (:message_ids)
