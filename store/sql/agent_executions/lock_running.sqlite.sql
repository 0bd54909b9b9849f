-- Selects the running agent executions of a conversation. The transaction has the whole file.
-- Index: agent_executions_running
--
-- :conversation_id text
SELECT id, message_id
FROM agent_executions
WHERE conversation_id = :conversation_id AND status = 'running'
ORDER BY id
