-- Inserts a conversation. The statement returns no row when the id is taken, or when a conversation with the id was
-- deleted lately.
-- Index: key of conversations, key of deleted_conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner text  The owner, or empty.
-- :agent text
-- :title text  The title, or empty.
-- :now timestamp
-- :log_id text
INSERT INTO conversations (id, tenant_id, owner_id, agent, title, created_at, updated_at, active_at, log_id)
SELECT :conversation_id, :tenant_id, :owner, :agent, :title, :now, :now, :now, :log_id
WHERE NOT EXISTS (SELECT 1 FROM deleted_conversations WHERE id = :conversation_id)
ON CONFLICT DO NOTHING
RETURNING
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
