-- Removes sessions that have ended.
-- Index: api_keys_ended_sessions, api_keys_by_kind, key of api_keys
--
-- :before timestamp
-- :row_limit bigint
DELETE FROM api_keys
WHERE id IN (
    SELECT id FROM api_keys
    WHERE kind = 'session' AND expires_at < :before
    ORDER BY expires_at
    LIMIT :row_limit
)
