-- Removes a page of the records of tool executions of a hidden conversation.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM tool_execution_records
WHERE conversation_id = :conversation_id AND execution_id IN (
    SELECT execution_id FROM tool_execution_records
    WHERE conversation_id = :conversation_id
    ORDER BY execution_id
    LIMIT :row_limit
)
