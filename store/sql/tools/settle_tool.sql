-- Replaces the end of a tool execution with an unknown outcome.
-- Index: key of tool_execution_records
--
-- :status text
-- :is_error boolean
-- :result json
-- :full_result json?
-- :conversation_id text
-- :execution_id text
UPDATE tool_execution_records
SET status = :status, is_error = :is_error, result = :result, full_result = :full_result
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
