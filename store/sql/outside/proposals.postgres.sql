-- Selects the inputs that people propose for waiting calls: approvals with another input, each the newest word of its
-- person. The newest proposal comes first. PostgreSQL looks up each call (`OFFSET 0`), because with lists as parameters
-- PostgreSQL may read the whole table.
-- Index: key of approval_answers
--
-- :conversation_ids text[]
-- :execution_ids text[]
-- :approve text  The decision.
-- :row_limit bigint
SELECT conversation_id, execution_id, answered_by, answered_at, answer
FROM (
    SELECT
        words.*,
        ROW_NUMBER() OVER (
            PARTITION BY conversation_id, execution_id, answered_by ORDER BY sequence_number DESC
        ) AS age
    FROM (VALUES (:conversation_ids, :execution_ids)) AS given (conversations, executions)
    CROSS JOIN LATERAL unnest(given.conversations, given.executions) AS asked (conversation, execution)
    CROSS JOIN LATERAL (
        SELECT conversation_id, execution_id, answered_by, answered_at, answer, sequence_number
        FROM approval_answers
        WHERE conversation_id = asked.conversation AND execution_id = asked.execution
        OFFSET 0
    ) AS words
) AS newest
WHERE age = 1 AND answer ->> 'decision' = :approve AND answer ->> 'tool_input' IS NOT NULL
ORDER BY sequence_number DESC, answered_at DESC
LIMIT :row_limit
