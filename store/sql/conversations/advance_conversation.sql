-- Updates the row of a conversation for a batch, under the conversation's lock.
-- Index: key of conversations
--
-- :conversation_id text
-- :last_sequence bigint
-- :new_messages bigint
-- :now timestamp
-- :title text  The title for a conversation without a title, or empty.
UPDATE conversations
SET last_sequence = :last_sequence, message_count = message_count + :new_messages, updated_at = :now,
    title = CASE title WHEN '' THEN :title ELSE title END
WHERE id = :conversation_id
