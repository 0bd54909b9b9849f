-- Selects the next page of the conversations of an owner, the newest first.
-- Index: conversations_by_owner, agent_executions_running, messages_queued, tool_execution_records_waiting
--
-- :tenant_id text
-- :owner_id text
-- :row_limit bigint
-- :before_updated_at timestamp
-- :before_id text
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title, message_count,
    last_sequence, created_at, updated_at,
    -- `ORDER BY` makes PostgreSQL look up the partial index. Otherwise PostgreSQL reads every running agent execution
    -- into a hash table.
    (SELECT e.id FROM agent_executions e
     WHERE e.conversation_id = conversations.id AND e.status = 'running'
     ORDER BY e.started_at
     LIMIT 1) IS NOT NULL AS is_running,
    (SELECT m.id FROM messages m
     WHERE m.conversation_id = conversations.id AND m.status = 'queued'
     ORDER BY m.created_at, m.id
     LIMIT 1) IS NOT NULL AS has_queued,
    (SELECT COUNT(*) FROM waiting_calls r
     WHERE r.conversation_id = conversations.id AND r.approval = 'pending') AS waiting_approvals,
    (SELECT COUNT(*) FROM waiting_calls r
     WHERE r.conversation_id = conversations.id AND r.approval <> 'pending') AS waiting_client_tools
FROM conversations
WHERE tenant_id = :tenant_id AND owner_id = :owner_id
    AND (updated_at, id) < (:before_updated_at, :before_id)
ORDER BY updated_at DESC, id DESC
LIMIT :row_limit
