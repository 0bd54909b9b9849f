-- Selects the summary of a tenant.
-- Index: api_keys_by_kind, conversations_by_tenant, conversations_by_owner, agent_executions_running_of_tenant
--
-- :now timestamp
-- :max_counted bigint  The most conversations to count.
-- :tenant_id text
WITH tenants (id) AS (SELECT CAST(:tenant_id AS TEXT))
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
