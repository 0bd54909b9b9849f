-- Selects the tenant and the owner of a conversation. A conversation without an owner belongs to its tenant alone.
-- Index: key of conversations
--
-- :conversation_id text
SELECT tenant_id, NULLIF(owner_id, '') AS owner_id
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
