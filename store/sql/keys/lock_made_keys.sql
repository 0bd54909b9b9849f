-- Selects and locks a key and the keys that the key made, directly or through other keys, without
-- the keys that are revoked. The order of the ids keeps two calls from waiting for each other.
-- Index: key of api_keys, api_keys_by_maker
--
-- :key_id text
-- :row_limit bigint
WITH RECURSIVE made (id) AS (
    SELECT id FROM api_keys WHERE id = :key_id AND kind = 'key'
    UNION
    SELECT k.id FROM api_keys k JOIN made m ON k.made_by_key = m.id
)
SELECT k.id, k.tenant_id FROM api_keys k
WHERE k.id IN (SELECT id FROM made) AND k.revoked_at IS NULL
ORDER BY k.id
LIMIT :row_limit
FOR UPDATE
