-- Selects the given turn, if the turn has begun, and every other turn of the conversation with the status running.
-- Index: key of agent_executions, agent_executions_running, key of agent_definitions
--
-- :agent_execution_id text
-- :conversation_id text
-- :now timestamp
SELECT
    e.id, e.message_id, e.status, e.steps, e.started_at, CLOCK(:now) AS read_at, e.agent_hash, d.definition
FROM (
    SELECT id, message_id, status, steps, started_at, agent_hash FROM agent_executions
    WHERE id = :agent_execution_id AND conversation_id = :conversation_id
    UNION ALL
    SELECT id, message_id, status, steps, started_at, agent_hash FROM running_turns
    WHERE conversation_id = :conversation_id AND id <> :agent_execution_id
) AS e
JOIN agent_definitions d ON d.hash = e.agent_hash
ORDER BY e.started_at, e.id
