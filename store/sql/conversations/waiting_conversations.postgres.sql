-- Selects the next page of the conversations with a call that waits for a person or a client, the newest first. Only a
-- running turn waits, so the search reads the tenant's running turns, which have a limit.
-- Index: agent_executions_running_of_tenant, key of conversations, agent_executions_running, messages_queued
-- Index: tool_execution_records_waiting
--
-- :tenant_id text
-- :owner_id text?
-- :before_active_at timestamp?  NULL for the first page.
-- :before_id text
-- :row_limit bigint
WITH waiting AS MATERIALIZED (
    SELECT e.conversation_id
    FROM running_turns e
    WHERE e.tenant_id = :tenant_id
        AND (SELECT r.execution_id FROM waiting_calls r
             WHERE r.conversation_id = e.conversation_id
             ORDER BY r.created_at, r.call_index
             LIMIT 1) IS NOT NULL
)
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at,
    is_running, has_queued, waiting_approvals, waiting_client_tools
FROM conversations_at_work
-- The array makes PostgreSQL look up each conversation. A join of unknown size would read the whole table.
WHERE id = ANY(ARRAY(SELECT conversation_id FROM waiting))
    AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    AND (CAST(:before_active_at AS TEXT) IS NULL OR (active_at, id) < (:before_active_at, :before_id))
ORDER BY active_at DESC, id DESC
LIMIT :row_limit
