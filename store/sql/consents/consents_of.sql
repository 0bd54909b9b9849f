-- Selects the tool servers that an owner has consented to. The number of servers of an installation bounds the list.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :row_limit bigint
SELECT server, created_at
FROM tool_consents
WHERE tenant_id = :tenant_id AND owner_id = :owner
ORDER BY server
LIMIT :row_limit
