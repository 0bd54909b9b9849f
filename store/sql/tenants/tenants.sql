-- Selects the summaries of a page of tenants. The search for the next tenant takes one step in each index, regardless
-- of a tenant's number of rows. Only the table of keys has no index by tenant, so each search reads all keys.
-- Index: conversations_by_tenant, conversations_by_owner, key of usage_days
-- Index: agent_executions_running_of_tenant, api_keys_by_kind
--
-- :now timestamp
-- :max_counted bigint  The most conversations to count.
-- :after_id text
-- :row_limit bigint
WITH RECURSIVE tenants (id, rank) AS (
    SELECT (
        SELECT MIN(n.tenant_id) FROM (
            SELECT MIN(tenant_id) AS tenant_id FROM conversations WHERE tenant_id > :after_id
            UNION ALL
            SELECT MIN(tenant_id) FROM api_keys WHERE tenant_id > :after_id
            UNION ALL
            SELECT MIN(tenant_id) FROM usage_days WHERE tenant_id > :after_id
        ) n
    ), 1
    UNION ALL
    SELECT (
        SELECT MIN(n.tenant_id) FROM (
            SELECT MIN(tenant_id) AS tenant_id FROM conversations WHERE tenant_id > t.id
            UNION ALL
            SELECT MIN(tenant_id) FROM api_keys WHERE tenant_id > t.id
            UNION ALL
            SELECT MIN(tenant_id) FROM usage_days WHERE tenant_id > t.id
        ) n
    ), t.rank + 1
    FROM tenants t
    WHERE t.id IS NOT NULL AND t.rank < :row_limit
)
SELECT
    t.id AS tenant_id,
    (SELECT COUNT(*) FROM api_keys k
     WHERE k.tenant_id = t.id AND k.kind = 'key' AND k.revoked_at IS NULL
         AND (k.expires_at IS NULL OR k.expires_at > :now)) AS valid_keys,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM conversations c WHERE c.tenant_id = t.id LIMIT :max_counted
    ) counted) AS conversations,
    (SELECT COUNT(*) FROM running_turns e
     WHERE e.tenant_id = t.id) AS running_turns,
    (SELECT MAX(c.active_at) FROM conversations c WHERE c.tenant_id = t.id) AS last_activity_at
FROM tenants t
WHERE t.id IS NOT NULL
ORDER BY t.id
