-- Selects the point from which a conversation goes on. The statement returns a row for each waiting message, in order,
-- interrupting messages first, or one row without a message. A message with `reject` does not count as waiting.
-- Index: key of conversations, key of agent_executions, key of execution_checkpoints, agent_executions_running
-- Index: agent_executions_by_start, messages_queued
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :row_limit bigint
-- :reject text  The word for messages that do not wait.
-- :interrupt text  The word for messages that end the running turn.
SELECT
    r.message_id AS running_message_id,
    -- The step of the last reply of the running turn.
    (SELECT MAX(k.step_number) FROM execution_checkpoints k
     WHERE k.agent_execution_id = r.id AND k.checkpoint_type = 'llm_complete') AS checkpoint_step,
    EXISTS (SELECT 1 FROM agent_executions b WHERE b.conversation_id = c.id) AS has_begun,
    m.id AS waiting_id
FROM (
    SELECT id FROM conversations
    WHERE id = :conversation_id AND tenant_id = :tenant_id
        AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
) c
-- The engine runs one turn at a time. Several rows can have the status running in data older than this rule, or after a
-- turn was terminated from outside. Only the newest turn is really running.
LEFT JOIN agent_executions r ON r.id = (
    SELECT e.id FROM running_turns e
    WHERE e.conversation_id = c.id
    ORDER BY e.started_at DESC
    LIMIT 1
)
LEFT JOIN messages m ON m.conversation_id = c.id AND m.status = 'queued' AND m.on_busy <> :reject
ORDER BY CASE WHEN m.on_busy = :interrupt THEN 0 ELSE 1 END, m.created_at, m.id
LIMIT :row_limit
