-- Inserts a conversation. The statement returns no row when the id is taken.
-- Index: key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner text  The owner, or empty.
-- :agent text
-- :title text  The title, or empty.
-- :model text  The model of new messages, or empty.
-- :metadata json
-- :now timestamp
-- :log_id text
INSERT INTO conversations (
    id, tenant_id, owner_id, agent, title, model, metadata, created_at, updated_at, active_at, log_id
)
VALUES (:conversation_id, :tenant_id, :owner, :agent, :title, :model, :metadata, :now, :now, :now, :log_id)
ON CONFLICT DO NOTHING
RETURNING
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
