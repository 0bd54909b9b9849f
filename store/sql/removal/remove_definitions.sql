-- Removes definitions of agents that the caller has locked. The statement looks for agent executions once more, because
-- PostgreSQL looked for them before the lock was taken. After the lock, no turn begins with the definition.
-- Index: key of agent_definitions, agent_executions_by_definition
--
-- :hashes text[]
DELETE FROM agent_definitions
WHERE hash IN (:hashes)
    AND (SELECT e.id FROM agent_executions e WHERE e.agent_hash = agent_definitions.hash LIMIT 1) IS NULL
