-- Notes who answered a call. The statement returns the answer's id, unless the call does not exist or has too many
-- answers. A repeated answer keeps the first person.
-- Index: key of tool_execution_records, key of conversations, key of approval_answers
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :execution_id text
-- :answer_id text
-- :answered_by text
-- :now timestamp
-- :max_answers bigint  The most answers to a call.
INSERT INTO approval_answers (conversation_id, execution_id, answer_id, answered_by, answered_at)
SELECT conversation_id, execution_id, :answer_id, :answered_by, :now
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
-- The update changes nothing. A row that conflicts is returned only after an update.
ON CONFLICT (conversation_id, execution_id, answer_id) DO UPDATE SET answered_by = approval_answers.answered_by
RETURNING answer_id
