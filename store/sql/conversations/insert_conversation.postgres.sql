-- Inserts a conversation. The statement returns no row when the id is taken.
-- The statement also adds a change to the lists with the conversation, as `list_changes/note.sql` does.
-- Index: key of conversations, key of list_changes
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
-- :slot bigint
-- :first_version bigint
WITH inserted AS (
    INSERT INTO conversations (
        id, tenant_id, owner_id, agent, title, model, metadata, created_at, updated_at, active_at, log_id
    )
    VALUES (:conversation_id, :tenant_id, :owner, :agent, :title, :model, :metadata, :now, :now, :now, :log_id)
    ON CONFLICT DO NOTHING
    RETURNING
        id, log_id, tenant_id, owner_id, agent, title, model, message_count, last_sequence, created_at, active_at
), noted AS (
    INSERT INTO list_changes (tenant_id, owner_id, slot, version)
    SELECT tenant_id, '', :slot, :first_version FROM inserted
    UNION ALL
    SELECT tenant_id, owner_id, 0, :first_version FROM inserted
    WHERE owner_id <> ''
    ON CONFLICT (tenant_id, owner_id, slot) DO UPDATE
    SET version = list_changes.version + 1
)
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at
FROM inserted
