-- Selects the messages of the context of a past LLM call, the oldest first: the summary of the cut that the call began
-- with, the kept messages from before the cut, and the messages up to the last message of the call. The message of the
-- hooks before the turn stands behind the task, and a first call reads the message with the task. The page ends at a
-- limit of rows or of bytes, as in `context/context`.
-- Index: key of context_cuts, messages_by_thread, key of messages, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :thread text  The sub-agent of the thread, or empty.
-- :step bigint
-- :first_sequence bigint  The sequence number of the first message of the call. A summary has the number of its cut.
-- :last_sequence bigint  The sequence number of the last stored message of the call.
-- :stored_at timestamp  The time of the reply. A later cut is not a cut of the call.
-- :row_limit bigint
-- :most_bytes bigint
SELECT *
FROM (
    SELECT found.*, ROW_NUMBER() OVER in_order AS page_rank, SUM(bytes) OVER in_order AS total_bytes
    FROM (
        SELECT
            role, content, tool_calls, tool_results, attachments, sequence_number, id, agent_execution_id, created_at,
            is_kept, rank,
            CAST(
                OCTET_LENGTH(content) + OCTET_LENGTH(CAST(tool_calls AS TEXT))
                + OCTET_LENGTH(CAST(tool_results AS TEXT))
                AS INTEGER
            ) AS bytes
        FROM (
            SELECT
                0 AS rank, 'summary' AS role, summary AS content,
                CAST('[]' AS JSON) AS tool_calls, CAST('[]' AS JSON) AS tool_results,
                CAST('[]' AS JSON) AS attachments,
                through_sequence AS sequence_number, '' AS id, '' AS agent_execution_id, created_at, FALSE AS is_kept
            FROM context_cuts
            WHERE conversation_id = :conversation_id AND thread = :thread AND through_sequence = :first_sequence
                AND (agent_execution_id = :agent_execution_id AND step < :step
                    OR agent_execution_id <> :agent_execution_id AND created_at <= :stored_at)
            UNION ALL
            SELECT
                1 AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id,
                agent_execution_id, created_at, TRUE AS is_kept
            FROM (
                SELECT unnest(kept_message_ids) AS kept_id FROM context_cuts
                WHERE conversation_id = :conversation_id AND thread = :thread
                    AND through_sequence = :first_sequence
                    AND (agent_execution_id = :agent_execution_id AND step < :step
                        OR agent_execution_id <> :agent_execution_id AND created_at <= :stored_at)
            ) AS kept
            -- A look-up for each message, regardless of PostgreSQL's estimate of the conversation's messages.
            CROSS JOIN LATERAL (
                SELECT * FROM messages
                WHERE conversation_id = :conversation_id AND id = kept_id
                LIMIT 1
            ) AS found_kept
            UNION ALL
            SELECT *
            FROM (
                SELECT
                    2 AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id,
                    agent_execution_id, created_at, FALSE AS is_kept
                FROM messages
                WHERE conversation_id = :conversation_id AND thread = :thread AND sequence_number <= :last_sequence
                    AND sequence_number > COALESCE((
                        SELECT through_sequence FROM context_cuts
                        WHERE conversation_id = :conversation_id AND thread = :thread
                            AND through_sequence = :first_sequence
                            AND (agent_execution_id = :agent_execution_id AND step < :step
                                OR agent_execution_id <> :agent_execution_id AND created_at <= :stored_at)
                    ), 0)
                ORDER BY sequence_number
                LIMIT :row_limit
            ) AS after
            UNION ALL
            SELECT
                2 AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id,
                agent_execution_id, created_at, FALSE AS is_kept
            FROM (
                SELECT * FROM messages
                WHERE conversation_id = :conversation_id AND thread = :thread AND sequence_number > :last_sequence
                ORDER BY sequence_number
                LIMIT 1
            ) AS next
            WHERE agent_execution_id = :agent_execution_id AND step < :step
        ) AS parts
        WHERE EXISTS (
            SELECT 1 FROM conversations
            WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
        )
        ORDER BY rank, sequence_number
        LIMIT :row_limit
    ) AS found
    WINDOW in_order AS (ORDER BY rank, sequence_number ROWS UNBOUNDED PRECEDING)
) AS measured
WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
