-- Selects the calls that wait for a person or a client, up to a limit of rows and a limit of bytes. The result has one
-- row beyond the limit if more rows exist. The first row always fits. The rows carry their rank, and come in no
-- particular order (`RankedRow`).
-- Index: tool_execution_records_waiting, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :row_limit bigint
-- :most_bytes bigint
-- :now timestamp
SELECT *
FROM (
    SELECT
        found.*,
        ROW_NUMBER() OVER in_order AS page_rank,
        SUM(bytes) OVER in_order AS total_bytes
    FROM (
        SELECT
            message_id, agent_execution_id, created_at, expires_at,
            COALESCE(expires_at <= CLOCK(:now), FALSE) AS is_expired, execution_id, step, call_index, call_id,
            tool_name, effect, timeout_ms, status, attempt, is_error, duration_ms, observed_sequence, kind,
            approval, input_hash, definition_hash, approval_rule,
            title_template, signatures, tool_input, question, events, result,
            CAST(OCTET_LENGTH(CAST(tool_input AS TEXT))
                + OCTET_LENGTH(COALESCE(CAST(question AS TEXT), '')) AS INTEGER) AS bytes
        FROM waiting_calls
        WHERE conversation_id = :conversation_id
            AND EXISTS (
                SELECT 1 FROM conversations
                WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                    AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
            )
        ORDER BY created_at, call_index
        LIMIT :row_limit
    ) AS found
    WINDOW in_order AS (ORDER BY created_at, call_index ROWS UNBOUNDED PRECEDING)
) AS measured
WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
