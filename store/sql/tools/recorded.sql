-- Selects which of the given tool executions have a record.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :execution_ids text[]
SELECT execution_id
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND execution_id IN (:execution_ids)
