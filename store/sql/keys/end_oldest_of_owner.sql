-- Removes the oldest sessions of an owner who signed in at an identity provider. The statement reads every open
-- session. People sign in rarely.
-- Index: api_keys_by_kind, key of api_keys
--
-- :tenant_id text
-- :owner text?  The owner of the sessions.
-- :keep bigint  The number of sessions that stay.
-- :row_limit bigint
DELETE FROM api_keys
WHERE id IN (
    SELECT id FROM api_keys
    WHERE kind = 'session' AND parent_id IS NULL AND tenant_id = :tenant_id AND owner_id = :owner
    ORDER BY created_at DESC, id DESC
    LIMIT :row_limit OFFSET :keep
)
