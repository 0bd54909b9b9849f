-- Removes the oldest sessions of a key.
-- Index: api_keys_by_parent, key of api_keys
--
-- :parent_id text
-- :keep bigint  The number of sessions that stay.
-- :row_limit bigint
DELETE FROM api_keys
WHERE id IN (
    SELECT id FROM api_keys
    WHERE parent_id = :parent_id
    ORDER BY created_at DESC, id DESC
    LIMIT :row_limit OFFSET :keep
)
