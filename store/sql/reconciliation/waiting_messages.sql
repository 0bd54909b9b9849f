-- Selects the waiting messages of a conversation in their order.
-- Index: messages_queued
--
-- :conversation_id text
-- :row_limit bigint
SELECT id, on_busy, created_at
FROM messages
WHERE conversation_id = :conversation_id AND status = 'queued'
ORDER BY created_at, id
LIMIT :row_limit
