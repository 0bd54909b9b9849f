-- Notes that an agent execution has no reservation any more, and no open call up to a generation, and counts the call
-- if it was cut.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :settled_generation bigint
-- :cut_calls bigint
-- :cut_tokens bigint
-- :cut_nano bigint
UPDATE agent_executions
SET reserved_tokens = 0, reserved_nano = 0, settled_generation = :settled_generation,
    cut_calls = cut_calls + :cut_calls, cut_tokens = cut_tokens + :cut_tokens, cut_nano = cut_nano + :cut_nano
WHERE id = :agent_execution_id
