-- Writes the note of a check.
-- Index: key of turn_checks
--
-- :conversation_id text
-- :starts bigint
-- :last_sequence bigint
-- :signalled_until timestamp?
UPDATE turn_checks
SET starts = :starts, last_sequence = :last_sequence, signalled_until = :signalled_until
WHERE conversation_id = :conversation_id
