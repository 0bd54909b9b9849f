-- Selects the reservation of an agent execution's call together with the called model, and locks the agent execution.
-- Index: key of agent_executions, key of agent_definitions
--
-- :agent_execution_id text
-- :conversation_id text
-- :last_generation bigint  The largest valid generation.
SELECT
    e.root_execution_id, e.reserved_tokens, e.reserved_nano, e.reserved_model,
    COALESCE(d.definition ->> 'provider', '') AS provider, COALESCE(d.definition ->> 'model', '') AS model
FROM agent_executions e
JOIN agent_definitions d ON d.hash = e.agent_hash
WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.generation <= :last_generation
    AND e.reserved_tokens > 0
FOR NO KEY UPDATE OF e
