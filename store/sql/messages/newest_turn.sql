-- Selects the turn that saved the last event of a conversation, and whether a message waits. The message that began the
-- turn is the original message of a retry.
-- Index: key of conversations, key of agent_execution_events, agent_executions_by_message, key of messages
-- Index: messages_queued
--
-- :conversation_id text
SELECT
    e.id AS agent_execution_id,
    e.message_id,
    e.status,
    CASE WHEN m.role = 'retry' THEN m.content ELSE m.id END AS begun_by,
    m.model,
    v.event_data AS last_event,
    EXISTS (
        SELECT 1 FROM messages w
        WHERE w.conversation_id = c.id AND w.status = 'queued'
    ) AS has_waiting
FROM conversations c
JOIN agent_execution_events v ON v.conversation_id = c.id AND v.sequence_number = c.last_sequence
JOIN agent_executions e
    ON e.conversation_id = v.conversation_id AND e.message_id = v.message_id AND e.parent_execution_id IS NULL
JOIN messages m ON m.conversation_id = e.conversation_id AND m.id = e.message_id
WHERE c.id = :conversation_id
