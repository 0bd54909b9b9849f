-- Selects the reason of a message's cancel.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
SELECT cancel_reason
FROM messages
WHERE conversation_id = :conversation_id AND id = :message_id
