-- Sums the tool calls of tenants, per day and tool.
-- Index: key of tool_usage_days
--
-- :tenant_id text?  Without a tenant: every tenant.
-- :agent text?  Without an agent: the calls of every agent.
-- :first_day text
-- :last_day text
-- :after_tenant_id text
-- :after_day text
-- :after_name text  The tool of the cursor, or empty.
-- :row_limit bigint
SELECT
    tenant_id, day, tool, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(failed_calls) AS BIGINT) AS failed_calls,
    CAST(SUM(duration_ms) AS BIGINT) AS duration_ms
FROM tool_usage_days
WHERE (CAST(:tenant_id AS TEXT) IS NULL OR tenant_id = :tenant_id) AND day >= :first_day AND day <= :last_day
    AND (tenant_id, day, tool) > (:after_tenant_id, :after_day, :after_name)
    AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)
GROUP BY tenant_id, day, tool
ORDER BY tenant_id, day, tool
LIMIT :row_limit
