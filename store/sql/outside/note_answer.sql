-- Notes an answer to a call as the newest. The statement returns the answer's id, unless the call does not exist or has
-- too many answers. A repeated answer keeps the first person, and is the newest again.
-- Index: key of tool_execution_records, key of conversations, key of approval_answers
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :execution_id text
-- :answer_id text
-- :answered_by text
-- :now timestamp
-- :answer json
-- :max_answers bigint  The most answers to a call.
INSERT INTO approval_answers (
    conversation_id, execution_id, answer_id, answered_by, answered_at, sequence_number, answer, is_saved
)
SELECT
    conversation_id, execution_id, :answer_id, :answered_by, :now,
    (SELECT COALESCE(MAX(n.sequence_number), 0) + 1 FROM approval_answers n
     WHERE n.conversation_id = :conversation_id AND n.execution_id = :execution_id),
    :answer, FALSE
FROM tool_execution_records
WHERE conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND execution_id = :execution_id
    AND (
        (SELECT COUNT(*) FROM approval_answers a
         WHERE a.conversation_id = :conversation_id AND a.execution_id = :execution_id) < :max_answers
        OR EXISTS (
            SELECT 1 FROM approval_answers a
            WHERE a.conversation_id = :conversation_id AND a.execution_id = :execution_id AND a.answer_id = :answer_id
        )
    )
ON CONFLICT (conversation_id, execution_id, answer_id) DO UPDATE
SET sequence_number = excluded.sequence_number, answered_at = excluded.answered_at
RETURNING answer_id
