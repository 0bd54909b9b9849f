-- Notes the last use of a key. The statement changes no row when a use after `:noted_before` is noted already.
-- Index: key of api_keys
--
-- :key_id text
-- :now timestamp
-- :noted_before timestamp
UPDATE api_keys
SET last_used_at = :now
WHERE id = :key_id AND (last_used_at IS NULL OR last_used_at < :noted_before)
