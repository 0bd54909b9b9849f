-- Removes the records of tool executions. They go first, because a claim of a tool locks the tool's record while the
-- claim waits for the agent execution.
-- Index: key of tool_execution_records
--
-- :conversation_ids text[]
DELETE FROM tool_execution_records
WHERE conversation_id IN (:conversation_ids)
