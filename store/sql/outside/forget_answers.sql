-- Removes the answers to a call's earlier requests. The event log and the audit trail keep the answers.
-- Index: key of approval_answers
--
-- :conversation_id text
-- :execution_id text
DELETE FROM approval_answers
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
