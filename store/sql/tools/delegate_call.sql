-- Selects the call that started a sub-agent. The record is locked, because claims and ends of tools do not lock the
-- conversation. A decision from the record must still be true at the write.
-- Index: key of tool_execution_records, key of agent_executions
--
-- :conversation_id text
-- :sub_agent text  The agent execution of the sub-agent.
SELECT
    agent_execution_id, started_at, execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status,
    attempt, is_error, duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
    title_template, signatures, tool_input, events, result
FROM tool_execution_records
WHERE conversation_id = :conversation_id
    AND call_id = (SELECT parent_tool_call_id FROM agent_executions WHERE id = :sub_agent)
FOR UPDATE
