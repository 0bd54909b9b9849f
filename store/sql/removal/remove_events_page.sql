-- Removes a page of the events of a hidden conversation.
-- Index: key of agent_execution_events
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM agent_execution_events
WHERE conversation_id = :conversation_id AND id IN (
    SELECT id FROM agent_execution_events
    WHERE conversation_id = :conversation_id
    ORDER BY sequence_number
    LIMIT :row_limit
)
