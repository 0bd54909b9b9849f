-- Selects which of the given call ids the conversation has used.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :call_ids text[]
SELECT call_id
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND call_id IN (:call_ids)
