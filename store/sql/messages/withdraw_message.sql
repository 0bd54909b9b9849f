-- Removes a waiting message, and returns its attachments.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
DELETE FROM messages
WHERE conversation_id = :conversation_id AND id = :message_id AND status = 'queued'
RETURNING attachments
