-- Removes checks without a reason: a turn ended, a message was taken, or a conversation was removed.
-- Index: key of turn_checks
--
-- :conversation_ids text[]
DELETE FROM turn_checks
WHERE conversation_id IN (:conversation_ids)
