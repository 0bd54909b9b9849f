-- Selects the state of a step's model call.
-- Index: key of execution_checkpoints
--
-- :agent_execution_id text
-- :step bigint
-- :checkpoint_type text
SELECT execution_state
FROM execution_checkpoints
WHERE agent_execution_id = :agent_execution_id AND step_number = :step AND checkpoint_type = :checkpoint_type
    AND execution_id = ''
