-- Selects the log and the last sequence number of each conversation.
-- Index: key of conversations
--
-- :conversation_ids text[]
SELECT id, log_id, last_sequence
FROM conversations
WHERE id IN (:conversation_ids) AND tenant_id <> ''
