-- Selects a page of a thread's context, the oldest first: the summary, the kept messages from before the cut, and the
-- messages after the cut; or only the messages after the caller's last read. The statement reads only new messages, and
-- no message from before a cut except the kept messages. The page ends at a limit of rows or of bytes. The first row
-- always fits, and the result has one row beyond the limit if more rows exist. The rows carry their rank in the page,
-- and come in no particular order.
-- Index: key of context_cuts, messages_by_thread, key of messages
--
-- :conversation_id text
-- :row_limit bigint
-- :thread text  The sub-agent of the thread, or empty.
-- :most_bytes bigint
-- :read_cut bigint  The last event before the cut of the last read: 0 without a cut, -1 without an earlier read.
-- :read_sequence bigint  The last event of the last read, or -1.
-- :read_created_at timestamp?  The creation time of the last event of the last read.
-- :read_revision bigint  The revision of the last message of the last read.
SELECT *
FROM (
    SELECT found.*, ROW_NUMBER() OVER in_order AS page_rank, SUM(bytes) OVER in_order AS total_bytes
    FROM (
        SELECT
            role, content, tool_calls, tool_results, attachments, sequence_number, id, agent_execution_id, created_at,
            revision, is_kept, rank,
            CAST(
                OCTET_LENGTH(content) + OCTET_LENGTH(CAST(tool_calls AS TEXT))
                + OCTET_LENGTH(CAST(tool_results AS TEXT))
                AS INTEGER
            ) AS bytes
        FROM (
            SELECT
                0 AS rank, 'summary' AS role, summary AS content,
                '[]' AS tool_calls, '[]' AS tool_results, '[]' AS attachments,
                through_sequence AS sequence_number, '' AS id, '' AS agent_execution_id, created_at,
                0 AS revision, FALSE AS is_kept
            FROM (
                SELECT summary, through_sequence, created_at FROM context_cuts
                WHERE conversation_id = :conversation_id AND thread = :thread
                ORDER BY through_sequence DESC
                LIMIT 1
            ) AS cut
            -- Each of the three parts asks whether the messages that the caller has read are still the beginning of the
            -- context: cut and last message are unchanged. Numbers alone are no proof, because a database restored to
            -- an earlier point assigns the numbers again.
            WHERE NOT (
                COALESCE((
                    SELECT through_sequence FROM context_cuts
                    WHERE conversation_id = :conversation_id AND thread = :thread
                    ORDER BY through_sequence DESC
                    LIMIT 1
                ), 0) = :read_cut
                AND EXISTS (
                    SELECT 1 FROM messages
                    WHERE conversation_id = :conversation_id AND thread = :thread
                        AND sequence_number = :read_sequence AND created_at = :read_created_at
                        AND revision = :read_revision
                )
            )
            UNION ALL
            SELECT
                1 AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id,
                agent_execution_id, created_at, revision, TRUE AS is_kept
            FROM messages
            WHERE conversation_id = :conversation_id
                AND id IN (SELECT value FROM json_each((
                    SELECT kept_message_ids FROM context_cuts
                    WHERE conversation_id = :conversation_id AND thread = :thread
                    ORDER BY through_sequence DESC
                    LIMIT 1
                )))
                AND NOT (
                    COALESCE((
                        SELECT through_sequence FROM context_cuts
                        WHERE conversation_id = :conversation_id AND thread = :thread
                        ORDER BY through_sequence DESC
                        LIMIT 1
                    ), 0) = :read_cut
                    AND EXISTS (
                        SELECT 1 FROM messages
                        WHERE conversation_id = :conversation_id AND thread = :thread
                            AND sequence_number = :read_sequence AND created_at = :read_created_at
                            AND revision = :read_revision
                    )
                )
            UNION ALL
            SELECT *
            FROM (
                SELECT
                    2 AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id,
                    agent_execution_id, created_at, revision, FALSE AS is_kept
                FROM messages
                WHERE conversation_id = :conversation_id AND thread = :thread
                    AND sequence_number > CASE WHEN (
                        COALESCE((
                            SELECT through_sequence FROM context_cuts
                            WHERE conversation_id = :conversation_id AND thread = :thread
                            ORDER BY through_sequence DESC
                            LIMIT 1
                        ), 0) = :read_cut
                        AND EXISTS (
                            SELECT 1 FROM messages
                            WHERE conversation_id = :conversation_id AND thread = :thread
                                AND sequence_number = :read_sequence AND created_at = :read_created_at
                                AND revision = :read_revision
                        )
                    ) THEN :read_sequence
                    ELSE COALESCE((
                        SELECT through_sequence FROM context_cuts
                        WHERE conversation_id = :conversation_id AND thread = :thread
                        ORDER BY through_sequence DESC
                        LIMIT 1
                    ), 0) END
                ORDER BY sequence_number
                LIMIT :row_limit
            ) AS after
        ) AS parts
        ORDER BY rank, sequence_number
        LIMIT :row_limit
    ) AS found
    WINDOW in_order AS (ORDER BY rank, sequence_number ROWS UNBOUNDED PRECEDING)
) AS measured
WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
