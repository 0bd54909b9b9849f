-- Selects the inputs that people propose for waiting calls: approvals with another input, each the newest word of its
-- person. The newest proposal comes first.
-- Index: key of approval_answers
--
-- :conversation_ids text[]
-- :execution_ids text[]
-- :approve text  The decision.
-- :row_limit bigint
SELECT conversation_id, execution_id, answered_by, answered_at, answer
FROM (
    SELECT
        conversation_id, execution_id, answered_by, answered_at, answer, sequence_number,
        ROW_NUMBER() OVER (
            PARTITION BY conversation_id, execution_id, answered_by ORDER BY sequence_number DESC
        ) AS age
    FROM approval_answers
    WHERE conversation_id IN (:conversation_ids) AND execution_id IN (:execution_ids)
) AS words
WHERE age = 1 AND answer ->> 'decision' = :approve AND answer ->> 'tool_input' IS NOT NULL
ORDER BY sequence_number DESC, answered_at DESC
LIMIT :row_limit
