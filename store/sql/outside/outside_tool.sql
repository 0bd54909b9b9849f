-- Selects a tool execution that is answered from outside.
-- Index: key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :execution_id text
-- :now timestamp
SELECT
    message_id, agent_execution_id, created_at, expires_at,
    COALESCE(expires_at <= CLOCK(:now), FALSE) AS is_expired, execution_id, step, call_index, call_id,
    tool_name, effect, timeout_ms, status, attempt, is_error, duration_ms, observed_sequence, kind, approval,
    input_hash, definition_hash, approval_rule, title_template, signatures, tool_input, question, events, result
FROM tool_execution_records
WHERE conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND execution_id = :execution_id
