-- Notes that an agent execution has no reservation any more, and no open call up to a generation.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :settled_generation bigint
UPDATE agent_executions
SET reserved_tokens = 0, reserved_nano = 0, settled_generation = :settled_generation
WHERE id = :agent_execution_id
