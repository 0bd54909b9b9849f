-- Ends the running agent executions of a hidden conversation, so that they count in no limit of turns.
-- Index: agent_executions_running
--
-- :conversation_id text
-- :status text
-- :now timestamp
UPDATE agent_executions
SET status = :status, finished_at = :now
WHERE conversation_id = :conversation_id AND status = 'running'
