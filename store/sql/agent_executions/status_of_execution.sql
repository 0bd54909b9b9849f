-- Selects the status of an agent execution.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
SELECT status
FROM agent_executions
WHERE id = :agent_execution_id AND conversation_id = :conversation_id
