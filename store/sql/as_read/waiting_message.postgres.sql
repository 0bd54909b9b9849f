-- Selects a waiting message and its conversation for a turn that begins without a lock. The statement returns no row
-- when a turn is running, when the message's turn has begun, when a granted epoch has not been used, for a retry, or
-- for a cancelled message.
-- Index: key of conversations, key of messages, key of agent_executions, agent_executions_running
--
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
SELECT
    c.log_id, c.last_sequence, c.tenant_id, c.run_epoch, m.content, m.attachments, m.model, TRUE AS is_waiting,
    FALSE AS is_retry
FROM (
    SELECT id, log_id, tenant_id, last_sequence, run_epoch
    FROM conversations
    WHERE id = :conversation_id AND run_epoch = granted_epoch
) AS c
JOIN messages m
    ON m.conversation_id = c.id AND m.id = :message_id AND m.role = 'user' AND m.sequence_number IS NULL
    AND m.cancel_reason IS NULL
WHERE NOT EXISTS (SELECT 1 FROM agent_executions WHERE id = :agent_execution_id)
    AND NOT EXISTS (
        SELECT 1 FROM running_turns
        WHERE conversation_id = :conversation_id
    )
