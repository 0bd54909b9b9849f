-- Gives back the claim of a call that was not made. The call counts neither as a call of the step nor as a cut call. A
-- repeated release changes nothing.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
UPDATE agent_executions
SET step_calls = step_calls - 1, settled_generation = :generation
WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND generation = :generation
    AND settled_generation < :generation AND step_calls > 0
