-- Selects the person for whom a tool runs.
-- Index: key of agent_executions, key of conversations
--
-- :agent_execution_id text
-- :conversation_id text
SELECT e.depth, e.agent, e.agent_hash, c.tenant_id, c.log_id, NULLIF(c.owner_id, '') AS owner_id
FROM agent_executions e
JOIN conversations c ON c.id = e.conversation_id
WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id
