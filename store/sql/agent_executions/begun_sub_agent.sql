-- Selects the agent execution of a sub-agent, if the sub-agent has begun.
-- Index: key of agent_executions, key of agent_definitions
--
-- :agent_execution_id text
-- :conversation_id text
-- :now timestamp
SELECT
    e.id, e.message_id, e.status, e.steps, e.started_at, CLOCK(:now) AS read_at, e.agent_hash, d.definition
FROM agent_executions e
JOIN agent_definitions d ON d.hash = e.agent_hash
WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id
