-- Updates the number of saved steps of an agent execution, and the end if the agent execution ends.
-- Index: key of agent_executions
--
-- :agent_execution_id text
-- :steps bigint
-- :status text
-- :error_code text?
-- :error_message text?
-- :finished_at timestamp?
-- :has_hooks boolean  True when hooks after the turn wait for their workflow.
-- :tool_queue text?  The task queue of the hooks.
UPDATE agent_executions
SET steps = :steps, status = :status, error_code = :error_code, error_message = :error_message,
    finished_at = CASE WHEN :finished_at IS NULL THEN NULL ELSE CLOCK(:finished_at) END,
    after_turn_due = CASE WHEN :has_hooks THEN CLOCK(:finished_at) END, after_turn_queue = :tool_queue
WHERE id = :agent_execution_id
