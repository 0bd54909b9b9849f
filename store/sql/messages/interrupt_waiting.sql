-- Notes the cancel of the waiting messages that interrupt, because a newer message interrupts instead.
-- Index: messages_queued
--
-- :conversation_id text
-- :message_id text  The newer message.
-- :interrupt text  The word for messages that end the running turn.
-- :reason text
UPDATE messages
SET cancel_reason = :reason
WHERE conversation_id = :conversation_id AND status = 'queued' AND on_busy = :interrupt AND id <> :message_id
    AND cancel_reason IS NULL
