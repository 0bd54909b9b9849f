-- Ends the call that started a sub-agent.
-- Index: key of tool_execution_records
--
-- :status text
-- :is_error boolean
-- :duration_ms bigint
-- :now timestamp
-- :events json
-- :result json
-- :full_result json?
-- :conversation_id text
-- :execution_id text
UPDATE tool_execution_records
SET status = :status, is_error = :is_error, duration_ms = :duration_ms, finished_at = :now, events = :events,
    result = :result, full_result = :full_result
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
