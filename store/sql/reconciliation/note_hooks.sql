-- Moves the time since when the hooks after a turn wait for their workflow, or ends the wait.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :due_at timestamp?  NULL ends the wait.
UPDATE agent_executions
SET after_turn_due = :due_at
WHERE id = :agent_execution_id AND after_turn_due IS NOT NULL
