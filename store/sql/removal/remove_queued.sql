-- Removes the waiting messages of a hidden conversation, so that they count in no limit of turns.
-- Index: messages_queued
--
-- :conversation_id text
DELETE FROM messages
WHERE conversation_id = :conversation_id AND status = 'queued'
