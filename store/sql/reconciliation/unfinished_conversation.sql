-- Selects the row of a conversation to check.
-- Index: key of conversations
--
-- :conversation_id text
SELECT id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
