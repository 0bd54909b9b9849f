-- Sums the usage of tenants, per day and model.
-- Index: key of usage_days
--
-- :tenant_id text?  Without a tenant: every tenant.
-- :agent text?  Without an agent: the usage of every agent.
-- :first_day text
-- :last_day text
-- :after_tenant_id text
-- :after_day text
-- :after_name text  The model of the cursor, or empty.
-- :row_limit bigint
SELECT
    tenant_id, day, model, CAST(NULL AS TEXT) AS agent,
    CAST(SUM(calls) AS BIGINT) AS calls,
    CAST(SUM(input_tokens) AS BIGINT) AS input_tokens,
    CAST(SUM(output_tokens) AS BIGINT) AS output_tokens,
    CAST(SUM(cached_tokens) AS BIGINT) AS cached_tokens,
    CAST(SUM(cache_write_tokens) AS BIGINT) AS cache_write_tokens,
    CAST(SUM(reasoning_tokens) AS BIGINT) AS reasoning_tokens,
    CAST(SUM(cost_nano) AS BIGINT) AS cost_nano,
    CAST(SUM(cut_calls) AS BIGINT) AS cut_calls,
    CAST(SUM(cut_tokens) AS BIGINT) AS cut_tokens,
    CAST(SUM(cut_nano) AS BIGINT) AS cut_nano,
    CAST(SUM(estimated_calls) AS BIGINT) AS estimated_calls
FROM usage_days
WHERE (CAST(:tenant_id AS TEXT) IS NULL OR tenant_id = :tenant_id) AND day >= :first_day AND day <= :last_day
    AND (tenant_id, day, model) > (:after_tenant_id, :after_day, :after_name)
    AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)
GROUP BY tenant_id, day, model
ORDER BY tenant_id, day, model
LIMIT :row_limit
