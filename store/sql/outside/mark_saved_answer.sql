-- Marks the answer to a call that is stored. The statement changes no row for an answer that no gateway has noted.
-- Index: key of approval_answers
--
-- :conversation_id text
-- :execution_id text
-- :answer_id text
UPDATE approval_answers
SET is_saved = TRUE
WHERE conversation_id = :conversation_id AND execution_id = :execution_id AND answer_id = :answer_id
