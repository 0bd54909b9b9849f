-- Removes the rows of conversations. Every row that refers to them is gone before.
-- Index: key of conversations
--
-- :conversation_ids text[]
DELETE FROM conversations
WHERE id IN (:conversation_ids)
