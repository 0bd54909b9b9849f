-- Selects a slice of a tool execution's result, as bytes: the content of a string, or the JSON of any other value. The
-- statement returns no row when the caller may not see the conversation.
-- Index: key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
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
            AND EXISTS (
                SELECT 1 FROM conversations
                WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                    AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
            )
    ) AS results
    WHERE whole IS NOT NULL
) AS texts
