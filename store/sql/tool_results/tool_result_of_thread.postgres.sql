-- Selects a slice of the result of a thread's tool execution, as bytes: the content of a string, or the JSON of any
-- other value.
-- Index: key of tool_execution_records, key of agent_executions
--
-- :conversation_id text
-- :sub_agent text?  The sub-agent of the thread, or NULL for the conversation's own thread.
-- :execution_id text
-- :offset_bytes bigint  The number of bytes before the slice.
-- :most_bytes bigint
SELECT
    substring(bytes FROM CAST(:offset_bytes AS INTEGER) + 1 FOR CAST(:most_bytes AS INTEGER)) AS bytes,
    CAST(octet_length(bytes) AS BIGINT) AS total_bytes
FROM (
    SELECT
        convert_to(
            CASE json_typeof(whole) WHEN 'string' THEN whole #>> '{}' ELSE CAST(whole AS TEXT) END, 'UTF8'
        ) AS bytes
    FROM (
        SELECT COALESCE(full_result, result) AS whole
        FROM tool_execution_records t
        WHERE conversation_id = :conversation_id AND execution_id = :execution_id
            AND (agent_execution_id = :sub_agent OR (CAST(:sub_agent AS TEXT) IS NULL AND EXISTS (
                SELECT 1 FROM agent_executions e
                WHERE e.id = t.agent_execution_id AND e.parent_execution_id IS NULL
            )))
    ) AS results
    WHERE whole IS NOT NULL
) AS texts
