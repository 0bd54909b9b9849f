-- Notes the reservation of an agent execution's call.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :step bigint
-- :tokens bigint
-- :nano bigint
-- :reserved_model text?  The called model, if the model is not the agent's own.
UPDATE agent_executions
SET reserved_step = :step, reserved_tokens = :tokens, reserved_nano = :nano, reserved_model = :reserved_model
WHERE id = :agent_execution_id
