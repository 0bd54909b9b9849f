-- Counts the failed agent executions of every tenant by agent and code, the most frequent first. The statement counts
-- the newest failures, and no more than `max_counted`.
-- Index: agent_executions_failed
--
-- :since timestamp
-- :until timestamp
-- :agent text?
-- :code text?
-- :max_counted bigint
-- :row_limit bigint
SELECT agent, error_code, COUNT(*) AS failures, MIN(finished_at) AS first_at, MAX(finished_at) AS last_at
FROM (
    SELECT agent, error_code, finished_at
    FROM agent_executions
    WHERE status = 'failed' AND finished_at >= :since AND finished_at < :until
        AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)
        AND (CAST(:code AS TEXT) IS NULL OR error_code = :code)
    ORDER BY finished_at DESC, id DESC
    LIMIT :max_counted
) AS counted
GROUP BY agent, error_code
ORDER BY COUNT(*) DESC, agent, error_code
LIMIT :row_limit
