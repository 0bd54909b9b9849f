-- Marks a changed message and the later messages of its thread as revised. A worker that has read the changed message
-- before has one of the marked messages as its last message, and therefore reads the whole thread again.
-- Index: messages_by_thread, key of messages
--
-- :conversation_id text
-- :thread text  The sub-agent of the thread, or empty.
-- :message_id text  The changed message.
UPDATE messages
SET revision = revision + 1
WHERE conversation_id = :conversation_id AND thread = :thread
    AND sequence_number >= (
        SELECT changed.sequence_number FROM messages changed
        WHERE changed.conversation_id = :conversation_id AND changed.id = :message_id
    )
