-- Selects the message of the running turn of a conversation. A turn that was terminated from outside may still have the
-- status running: the newest turn counts.
-- Index: agent_executions_running
--
-- :conversation_id text
SELECT message_id
FROM running_turns
WHERE conversation_id = :conversation_id
ORDER BY started_at DESC
LIMIT 1
