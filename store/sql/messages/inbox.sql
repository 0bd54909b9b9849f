-- Selects the waiting messages of a conversation in the order of their turns: interrupting messages come first. A
-- message with `reject` does not wait for a turn.
-- Index: messages_queued
--
-- :conversation_id text
-- :reject text  The word for messages that do not wait.
-- :interrupt text  The word for messages that end the running turn.
-- :row_limit bigint
SELECT id, on_busy, cancel_reason
FROM messages
WHERE conversation_id = :conversation_id AND status = 'queued' AND on_busy <> :reject
ORDER BY CASE WHEN on_busy = :interrupt THEN 0 ELSE 1 END, created_at, id
LIMIT :row_limit
