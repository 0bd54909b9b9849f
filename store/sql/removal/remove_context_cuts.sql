-- Removes the cuts of the context of conversations.
-- Index: key of context_cuts
--
-- :conversation_ids text[]
DELETE FROM context_cuts
WHERE conversation_id IN (:conversation_ids)
