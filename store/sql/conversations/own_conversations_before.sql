-- Selects the next page of the conversations of an owner, the newest first.
-- Index: conversations_by_owner, agent_executions_running, messages_queued, tool_execution_records_waiting
--
-- :tenant_id text
-- :owner_id text
-- :row_limit bigint
-- :before_active_at timestamp
-- :before_id text
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at,
    is_running, has_queued, waiting_approvals, waiting_client_tools
FROM conversations_at_work
WHERE tenant_id = :tenant_id AND owner_id = :owner_id
    AND (active_at, id) < (:before_active_at, :before_id)
ORDER BY active_at DESC, id DESC
LIMIT :row_limit
