-- Copies the results of a step's calls into the step's assistant row once every call is observed, in call order, so
-- that a context is read from one table. No context is read earlier. An element of the copy is an `api::ToolResult`.
-- Index: key of messages, key of tool_execution_records, tool_execution_records_open
--
-- :conversation_id text
-- :message_id text
-- :execution_ids text[]  The tool executions of the step's calls.
-- :observed_now text[]  The tool executions observed in the current transaction.
UPDATE messages
SET tool_results = (
    SELECT
        json_agg(
            json_build_object(
                'execution_id', execution_id, 'call_id', call_id, 'tool_name', tool_name, 'is_error', is_error,
                'result', result
            ) ORDER BY call_index
        )
    FROM tool_execution_records
    WHERE conversation_id = :conversation_id AND execution_id IN (:execution_ids)
)
WHERE conversation_id = :conversation_id AND id = :message_id
    AND NOT EXISTS (
        SELECT 1 FROM tool_execution_records o
        WHERE o.agent_execution_id = messages.agent_execution_id AND o.step = messages.step
            AND o.observed_sequence IS NULL
            AND o.execution_id NOT IN (:observed_now)
    )
