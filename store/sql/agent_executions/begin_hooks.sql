-- Begins the hooks after a turn: the hooks wait for their workflow no longer. Returns the status of the turn.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
UPDATE agent_executions
SET after_turn_due = NULL
WHERE id = :agent_execution_id AND conversation_id = :conversation_id
RETURNING status
