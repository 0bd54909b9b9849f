-- Notes the response that runs at the provider for a call. The statement changes no row when a newer call was claimed,
-- when the agent execution is not running, or when a newer run owns the conversation.
-- Index: key of agent_executions, key of conversations
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
-- :status_running text
-- :run_epoch bigint  The epoch of the caller's run.
-- :background_response json
UPDATE agent_executions
SET background_response = :background_response
WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND generation = :generation
    AND status = :status_running
    -- The conversation is read without its lock, as of the statement's start. A note in the database by then counts as
    -- earlier than a newer run.
    AND (SELECT run_epoch FROM conversations WHERE conversations.id = :conversation_id) <= :run_epoch
