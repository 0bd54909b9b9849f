-- False when a newer run owns the conversation.
-- Index: key of conversations
--
-- :conversation_id text
-- :run_epoch bigint
SELECT NOT EXISTS (SELECT 1 FROM conversations WHERE id = :conversation_id AND run_epoch > :run_epoch)
