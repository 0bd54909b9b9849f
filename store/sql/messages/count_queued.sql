-- Counts the waiting messages of a conversation.
-- Index: messages_queued
--
-- :conversation_id text
SELECT COUNT(*)
FROM messages
WHERE conversation_id = :conversation_id AND status = 'queued'
