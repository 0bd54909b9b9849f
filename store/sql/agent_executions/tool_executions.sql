-- Selects the newest tool calls of an agent execution. The newest call comes first.
-- Index: key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :row_limit bigint
SELECT
    t.execution_id, t.call_id, t.tool_name, t.step, t.status, t.effect, t.approval, t.attempt AS attempts, t.is_error,
    t.timeout_ms, t.duration_ms, t.created_at AS asked_at, t.started_at, t.finished_at
FROM tool_execution_records t
WHERE t.conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND t.agent_execution_id = :agent_execution_id
ORDER BY t.step DESC, t.call_index DESC
LIMIT :row_limit
