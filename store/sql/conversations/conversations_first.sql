-- Selects the first page of the conversations of a tenant, the newest first, with the work that goes on in each.
-- Index: conversations_by_tenant, agent_executions_running, messages_queued, tool_execution_records_waiting
--
-- :tenant_id text
-- :row_limit bigint
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at,
    is_running, has_queued, waiting_approvals, waiting_client_tools
FROM conversations_at_work
WHERE tenant_id = :tenant_id
ORDER BY active_at DESC, id DESC
LIMIT :row_limit
