-- Removes a page of the trace contexts of a hidden conversation.
-- Index: key of trace_contexts
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM trace_contexts
WHERE conversation_id = :conversation_id AND agent_execution_id IN (
    SELECT agent_execution_id FROM trace_contexts
    WHERE conversation_id = :conversation_id
    ORDER BY agent_execution_id
    LIMIT :row_limit
)
