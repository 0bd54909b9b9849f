-- Locks a page of the expired conversations. The statement skips a conversation that a writer has locked.
-- Index: key of conversations, agent_executions_running, messages_queued
--
-- :before timestamp
-- :after_id text
-- :row_limit bigint
SELECT c.id
FROM conversations c
WHERE c.updated_at < :before AND c.tenant_id <> ''
    AND NOT EXISTS (SELECT 1 FROM agent_executions e WHERE e.conversation_id = c.id AND e.status = 'running')
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued')
    AND c.id > :after_id
ORDER BY c.id
LIMIT :row_limit
FOR UPDATE OF c SKIP LOCKED
