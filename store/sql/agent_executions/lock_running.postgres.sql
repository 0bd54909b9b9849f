-- Locks the running agent executions of a conversation, in the order of their ids. The lock lets other transactions
-- insert rows that refer to the agent executions, because a claim of a tool holds the tool's record meanwhile.
-- Index: agent_executions_running
--
-- :conversation_id text
SELECT id, message_id
FROM agent_executions
WHERE conversation_id = :conversation_id AND status = 'running'
ORDER BY id
FOR NO KEY UPDATE
