-- Counts the unfinished hooks after turns of a conversation.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :step bigint  The step of the hooks after turns.
-- :since timestamp  The start of the period.
-- :agent_execution_id text  The agent execution to leave out.
-- :open_statuses text[]
SELECT COUNT(*)
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND step = :step AND created_at > :since
    AND agent_execution_id <> :agent_execution_id AND status IN (:open_statuses)
