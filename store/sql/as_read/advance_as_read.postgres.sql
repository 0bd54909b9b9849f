-- Updates the row of a conversation for a batch that was built without the lock. The statement changes no row when the
-- conversation has changed since it was read, or when a newer run owns the conversation.
-- Index: key of conversations
--
-- :conversation_id text
-- :last_sequence bigint
-- :new_messages bigint
-- :now timestamp
-- :title text  The title for a conversation without a title, or empty.
-- :read_sequence bigint
-- :read_log_id text
-- :run_epoch bigint
UPDATE conversations
SET last_sequence = :last_sequence, message_count = message_count + :new_messages, updated_at = :now,
    title = CASE title WHEN '' THEN :title ELSE title END
WHERE id = :conversation_id AND last_sequence = :read_sequence AND log_id = :read_log_id AND run_epoch <= :run_epoch
RETURNING id
