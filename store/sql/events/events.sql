-- Selects a page of the events of a log, up to a limit of rows and a limit of bytes. The first row always fits. One row
-- more says that the log goes on. The limit is computed from the numbers and the lengths of the rows, because a
-- computation with the texts would take twice the time. The first row also has the newest generation of every running
-- agent execution, from the same snapshot and in the same round trip.
-- Index: key of agent_execution_events, key of conversations, agent_executions_running, agent_executions_by_message
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :from_sequence bigint
-- :row_limit bigint
-- :log_id text
-- :most_bytes bigint
SELECT
    id, message_id, event_type, event_data, sequence_number, created_at, sequence_number AS page_rank,
    CAST(data_bytes AS INTEGER) AS bytes,
    CASE sequence_number WHEN :from_sequence THEN (
        SELECT json_object_agg(e.id, e.generation)
        FROM agent_executions e
        WHERE e.conversation_id = :conversation_id AND e.status = 'running'
    ) END AS generations
FROM agent_execution_events
WHERE conversation_id = :conversation_id AND sequence_number >= :from_sequence
    AND sequence_number <= (
        SELECT MAX(sequence_number) FROM (
        SELECT * FROM (
            SELECT
                found.*,
                ROW_NUMBER() OVER in_order AS page_rank,
                SUM(bytes) OVER in_order AS total_bytes
            FROM (
                SELECT sequence_number, CAST(data_bytes AS INTEGER) AS bytes
                FROM agent_execution_events
                WHERE conversation_id = :conversation_id AND sequence_number >= :from_sequence
                    AND EXISTS (
                        SELECT 1 FROM conversations
                        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id) AND log_id = :log_id
                    )
                ORDER BY sequence_number
                LIMIT :row_limit
            ) AS found
            WINDOW in_order AS (ORDER BY sequence_number ROWS UNBOUNDED PRECEDING)
        ) AS measured
        WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
        ) AS page
    )
ORDER BY sequence_number
