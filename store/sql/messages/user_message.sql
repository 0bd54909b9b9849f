-- Selects a user's message, or a user's retry. The row also has the status of the agent execution that took the
-- message.
-- Index: key of messages, key of agent_executions
--
-- :conversation_id text
-- :message_id text
SELECT
    m.status = 'queued' AS is_waiting, m.role = 'retry' AS is_retry, m.content, m.attachments, m.model,
    m.cancel_reason, e.status AS taker_status
FROM messages m
LEFT JOIN agent_executions e ON e.id = m.agent_execution_id
WHERE m.conversation_id = :conversation_id AND m.id = :message_id AND m.role IN ('user', 'retry')
