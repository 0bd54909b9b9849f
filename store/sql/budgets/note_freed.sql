-- Notes that an agent execution has no reservation any more.
-- Index: key of agent_executions
--
-- :agent_execution_id text
UPDATE agent_executions
SET reserved_tokens = 0, reserved_nano = 0
WHERE id = :agent_execution_id
