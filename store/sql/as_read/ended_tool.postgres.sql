-- Selects the conversation, its running agent execution, a tool that has ended, and the message that called the tool,
-- for a save without a lock. The statement returns no row in the cases of `reply.postgres.sql`, or when the tool is
-- open or observed.
-- Index: key of conversations, key of agent_executions, key of tool_execution_records, key of messages,
-- Index: key of agent_execution_events
--
-- :conversation_id text
-- :agent_execution_id text
-- :message_id text
-- :status_running text
-- :run_epoch bigint
-- :first_event_id text  The first event of the batch: a stored event means that the batch is stored.
-- :execution_id text
-- :assistant_message_id text
-- :open_statuses text[]
SELECT c.log_id, c.last_sequence, e.steps, t.*, m.id, m.content, m.tool_calls, m.sequence_number
FROM (
    SELECT id, log_id, last_sequence
    FROM conversations
    WHERE id = :conversation_id AND run_epoch <= :run_epoch
) AS c
JOIN agent_executions e
    ON e.conversation_id = c.id AND e.id = :agent_execution_id AND e.message_id = :message_id
    AND e.status = :status_running
JOIN (
    SELECT execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
        duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
        title_template, signatures,
        tool_input, events, result
    FROM tool_execution_records
    WHERE conversation_id = :conversation_id AND execution_id = :execution_id
        AND agent_execution_id = :agent_execution_id AND observed_sequence IS NULL AND status NOT IN (:open_statuses)
) AS t ON TRUE
JOIN messages m ON m.conversation_id = c.id AND m.id = :assistant_message_id AND m.step = t.step
WHERE NOT EXISTS (SELECT 1 FROM agent_execution_events WHERE id = :first_event_id)
