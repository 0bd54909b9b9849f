-- Selects the note of the last check of a conversation.
-- Index: key of turn_checks
--
-- :conversation_id text
SELECT starts, last_sequence, signalled_until
FROM turn_checks
WHERE conversation_id = :conversation_id
