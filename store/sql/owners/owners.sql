-- Selects the owners of a tenant with refused credentials. The tenant's limit of rows bounds the list.
-- Index: key of owner_refusals
--
-- :tenant_id text
-- :row_limit bigint
SELECT owner_id, is_refused, ended_at, is_all_refused, all_ended_at
FROM owner_refusals
WHERE tenant_id = :tenant_id
ORDER BY owner_id
LIMIT :row_limit
