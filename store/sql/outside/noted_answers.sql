-- Selects the answers to a call that gateways have noted, with the persons. The newest answer comes first.
-- Index: key of approval_answers
--
-- :conversation_id text
-- :execution_id text
SELECT answer_id, answered_by, answer
FROM approval_answers
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
ORDER BY sequence_number DESC, answered_at DESC, answer_id DESC
