-- Revokes a key. A second call keeps the time of the first.
-- Index: key of api_keys
--
-- :key_id text
-- :now timestamp
UPDATE api_keys
SET revoked_at = COALESCE(revoked_at, :now)
WHERE id = :key_id
