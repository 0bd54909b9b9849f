-- Selects a tool execution to observe. The record is locked, because claims and ends of tools do not lock the
-- conversation. A decision from the record must still be true at the write.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :agent_execution_id text
-- :execution_id text
SELECT
    execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
    duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
    title_template, signatures,
    tool_input, question, events, result
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND agent_execution_id = :agent_execution_id
    AND execution_id = :execution_id
FOR UPDATE
