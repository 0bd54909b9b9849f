-- Notes the end of a call without a reply in a turn without a budget: the possible usage of a cut call, or 0 for a call
-- without cost. The statement changes no row when a newer call was claimed, or when the agent execution has ended.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
-- :tokens bigint
-- :nano bigint
-- :reserved_model text?  The called model, if the model is not the agent's own.
UPDATE agent_executions
SET reserved_tokens = :tokens, reserved_nano = :nano, reserved_model = :reserved_model,
    settled_generation = :generation
WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND generation = :generation
    AND status = 'running'
