-- Removes the checkpoints of conversations.
-- Index: execution_checkpoints_by_message
--
-- :conversation_ids text[]
DELETE FROM execution_checkpoints
WHERE conversation_id IN (:conversation_ids)
