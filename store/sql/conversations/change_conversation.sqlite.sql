-- Changes the title, the model and the metadata of a conversation that the caller may see.
-- Index: key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :title text?  The title, or empty; NULL: the title stays.
-- :model text?  The model of new messages, or empty; NULL: the model stays.
-- :metadata json?  NULL: the metadata stays.
UPDATE conversations
SET title = COALESCE(CAST(:title AS TEXT), title), model = COALESCE(CAST(:model AS TEXT), model),
    metadata = COALESCE(:metadata, metadata)
WHERE id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
RETURNING
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
