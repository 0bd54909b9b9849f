-- Selects a message of a caller with the turn that took the message.
-- Index: key of messages, key of agent_executions, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :message_id text
SELECT
    m.created_at, m.status = 'queued' AS is_waiting, e.id AS agent_execution_id, e.message_id AS turn_message_id,
    e.status, e.error_code, e.error_message, e.started_at, e.finished_at
FROM messages m
LEFT JOIN agent_executions e ON e.id = m.agent_execution_id
WHERE m.conversation_id = :conversation_id AND m.id = :message_id AND m.role IN ('user', 'retry')
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
