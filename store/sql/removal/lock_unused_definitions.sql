-- Locks definitions of agents without an agent execution. The statement skips a definition that a turn is about to use.
-- Index: key of agent_definitions, agent_executions_by_definition
--
-- :row_limit bigint
SELECT d.hash
FROM agent_definitions d
-- `LIMIT` makes PostgreSQL look up each definition. Otherwise PostgreSQL may read every agent execution.
WHERE (SELECT e.id FROM agent_executions e WHERE e.agent_hash = d.hash LIMIT 1) IS NULL
ORDER BY d.hash
LIMIT :row_limit
FOR UPDATE SKIP LOCKED
