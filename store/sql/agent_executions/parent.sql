-- Selects the start of a sub-agent, its parent, and the number of the parent's saved steps.
-- Index: key of agent_executions
--
-- :agent_execution_id text  The agent execution of the sub-agent.
-- :conversation_id text
SELECT s.started_at, s.parent_execution_id, p.steps
FROM agent_executions s
JOIN agent_executions p ON p.id = s.parent_execution_id
WHERE s.id = :agent_execution_id AND s.conversation_id = :conversation_id
