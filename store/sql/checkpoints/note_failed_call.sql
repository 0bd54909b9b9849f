-- Notes the position in the model chain after a failed call, and the number of calls that count. When another model
-- is called next, the next claim gets no response of the failed call. The statement changes no row when a newer call
-- was claimed, when the agent execution is not running, or when a newer run owns the conversation.
-- Index: key of agent_executions, key of conversations
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
-- :status_running text
-- :run_epoch bigint  The epoch of the caller's run.
-- :model_chain json
-- :step_calls bigint  The number of calls that count.
-- :falls_back boolean  True when another model is called next.
UPDATE agent_executions
SET model_chain = :model_chain, step_calls = :step_calls,
    background_response = CASE WHEN :falls_back THEN NULL ELSE background_response END
WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND generation = :generation
    AND status = :status_running
    -- The conversation is read without its lock, as of the statement's start. A note in the database by then counts as
    -- earlier than a newer run.
    AND (SELECT run_epoch FROM conversations WHERE conversations.id = :conversation_id) <= :run_epoch
