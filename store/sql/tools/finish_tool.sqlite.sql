-- Ends an unfinished tool execution, and returns its record. The first end wins.
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
-- :agent_execution_id text
-- :open_statuses text[]
UPDATE tool_execution_records
SET status = :status, is_error = :is_error, duration_ms = :duration_ms, finished_at = :now, events = :events,
    result = :result, full_result = :full_result, question = NULL
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
    AND agent_execution_id = :agent_execution_id AND status IN (:open_statuses)
RETURNING
    execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
    duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
    title_template, signatures,
    tool_input, events, result, full_result
