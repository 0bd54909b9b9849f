-- Changes the title, the model and the metadata of a conversation that the caller may see.
-- The statement also adds a change to the lists with the conversation, as `list_changes/note.sql` does.
-- Index: key of conversations, key of list_changes
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :title text?  The title, or empty; NULL: the title stays.
-- :model text?  The model of new messages, or empty; NULL: the model stays.
-- :metadata json?  NULL: the metadata stays.
-- :slot bigint
-- :first_version bigint
WITH changed AS (
    UPDATE conversations
    SET title = COALESCE(CAST(:title AS TEXT), title), model = COALESCE(CAST(:model AS TEXT), model),
        metadata = COALESCE(:metadata, metadata)
    WHERE id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    RETURNING
        id, log_id, tenant_id, owner_id, agent, title, model, message_count, last_sequence, created_at, active_at
), noted AS (
    INSERT INTO list_changes (tenant_id, owner_id, slot, version)
    SELECT tenant_id, '', :slot, :first_version FROM changed
    UNION ALL
    SELECT tenant_id, owner_id, 0, :first_version FROM changed
    WHERE owner_id <> ''
    ON CONFLICT (tenant_id, owner_id, slot) DO UPDATE
    SET version = list_changes.version + 1
)
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
FROM changed
