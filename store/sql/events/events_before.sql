-- Selects a page of the events before a sequence number, the last event first. The limits are those of `events`. The
-- rows have no generations.
-- Index: key of agent_execution_events, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :before_sequence bigint
-- :row_limit bigint
-- :log_id text
-- :most_bytes bigint
SELECT
    id, message_id, event_type, event_data, sequence_number, created_at, -sequence_number AS page_rank,
    CAST(data_bytes AS INTEGER) AS bytes,
    NULL AS generations
FROM agent_execution_events
WHERE conversation_id = :conversation_id AND sequence_number < :before_sequence
    AND sequence_number >= (
        SELECT MIN(sequence_number) FROM (
        SELECT * FROM (
            SELECT
                found.*,
                ROW_NUMBER() OVER in_order AS page_rank,
                SUM(bytes) OVER in_order AS total_bytes
            FROM (
                SELECT sequence_number, CAST(data_bytes AS INTEGER) AS bytes
                FROM agent_execution_events
                WHERE conversation_id = :conversation_id AND sequence_number < :before_sequence
                    AND EXISTS (
                        SELECT 1 FROM conversations
                        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id) AND log_id = :log_id
                    )
                ORDER BY sequence_number DESC
                LIMIT :row_limit
            ) AS found
            WINDOW in_order AS (ORDER BY sequence_number DESC ROWS UNBOUNDED PRECEDING)
        ) AS measured
        WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
        ) AS page
    )
ORDER BY sequence_number DESC
