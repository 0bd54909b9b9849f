-- Updates the number of saved steps of an agent execution, and the end if the agent execution ends.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :steps bigint
-- :status text
-- :error_code text?
-- :error_message text?
-- :finished_at timestamp?
UPDATE agent_executions
SET steps = :steps, status = :status, error_code = :error_code, error_message = :error_message,
    finished_at = CASE WHEN :finished_at IS NULL THEN NULL ELSE CLOCK(:finished_at) END
WHERE id = :agent_execution_id
