-- Postpones the checks of conversations.
-- Index: key of turn_checks
--
-- :due_at timestamp
-- :conversation_ids text[]
UPDATE turn_checks
SET due_at = :due_at
WHERE conversation_id IN (:conversation_ids)
