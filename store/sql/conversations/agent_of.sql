-- Selects the agent of a conversation.
-- Index: key of conversations
--
-- :conversation_id text
SELECT agent
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
