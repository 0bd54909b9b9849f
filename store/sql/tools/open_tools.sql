-- Selects the tool executions of an agent execution that are not observed. The records are locked, because claims and
-- ends of tools do not lock the conversation. A decision from a record must still be true at the write.
-- Index: tool_execution_records_open
--
-- :agent_execution_id text
SELECT
    execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
    duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
    title_template, signatures,
    tool_input, question, events, result
FROM tool_execution_records
WHERE agent_execution_id = :agent_execution_id AND observed_sequence IS NULL
ORDER BY step, call_index
FOR UPDATE
