-- Selects the person who gave an answer to a call, as noted by a gateway.
-- Index: key of approval_answers
--
-- :conversation_id text
-- :execution_id text
-- :answer_id text
SELECT answered_by
FROM approval_answers
WHERE conversation_id = :conversation_id AND execution_id = :execution_id AND answer_id = :answer_id
