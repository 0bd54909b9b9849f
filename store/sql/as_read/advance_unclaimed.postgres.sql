-- Like `advance_as_read.postgres.sql`, for the begin of a turn: no run was granted another epoch since the read.
-- Index: key of conversations
--
-- :conversation_id text
-- :last_sequence bigint
-- :new_messages bigint
-- :now timestamp
-- :title text  The title for a conversation without a title, or empty.
-- :read_sequence bigint
-- :read_log_id text
-- :read_epoch bigint
UPDATE conversations
SET last_sequence = :last_sequence, message_count = message_count + :new_messages, updated_at = :now,
    active_at = :now, title = CASE title WHEN '' THEN :title ELSE title END
WHERE id = :conversation_id AND last_sequence = :read_sequence AND log_id = :read_log_id AND run_epoch = :read_epoch
    AND granted_epoch = :read_epoch
RETURNING id
