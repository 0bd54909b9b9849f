-- Selects a page of a tenant's sums, by day and agent.
-- Index: key of usage_days
--
-- :tenant_id text
-- :agent text?  Without an agent: the usage of every agent.
-- :first_day text
-- :last_day text
-- :after_day text  The day of the cursor, or empty.
-- :after_name text  The agent of the cursor, or empty.
-- :row_limit bigint
SELECT
    day, agent, CAST(NULL AS TEXT) AS model,
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
WHERE tenant_id = :tenant_id AND day >= :first_day AND day <= :last_day
    AND (day, agent) > (:after_day, :after_name)
    AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)
GROUP BY day, agent
ORDER BY day, agent
LIMIT :row_limit
