-- Selects the last event before a sequence number that was saved by a time.
-- Index: key of agent_execution_events, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :log_id text
-- :before_sequence bigint
-- :saved_by timestamp
SELECT sequence_number
FROM agent_execution_events
WHERE conversation_id = :conversation_id AND sequence_number < :before_sequence AND created_at <= :saved_by
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR
        owner_id = :owner_id)
            AND log_id = :log_id
    )
ORDER BY sequence_number DESC
LIMIT 1
