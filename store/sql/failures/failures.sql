-- Selects a page of the failed agent executions of every tenant, the newest first.
-- Index: agent_executions_failed
--
-- :since timestamp
-- :before timestamp  The end of the period, or the end of the cursor's agent execution.
-- :before_id text  The cursor's agent execution; an empty text for the first page.
-- :agent text?
-- :code text?
-- :row_limit bigint
SELECT
    id, tenant_id, conversation_id, message_id, parent_execution_id, agent, error_code, error_message, step_calls,
    started_at, finished_at
FROM agent_executions
WHERE status = 'failed' AND finished_at >= :since AND (finished_at, id) < (:before, :before_id)
    AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)
    AND (CAST(:code AS TEXT) IS NULL OR error_code = :code)
ORDER BY finished_at DESC, id DESC
LIMIT :row_limit
