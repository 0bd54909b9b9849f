-- Removes the check of a finished conversation.
-- Index: key of turn_checks
--
-- :conversation_id text
DELETE FROM turn_checks
WHERE conversation_id = :conversation_id
