-- Returns true when the agent execution is running, and no newer call than the given generation was claimed.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
-- :status_running text
SELECT EXISTS (
    SELECT 1 FROM agent_executions
    WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND status = :status_running
        AND generation <= :generation
)
