-- Removes the budgets of conversations.
-- Index: key of conversation_budgets
--
-- :conversation_ids text[]
DELETE FROM conversation_budgets
WHERE conversation_id IN (:conversation_ids)
