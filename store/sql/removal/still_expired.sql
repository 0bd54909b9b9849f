-- Selects the conversations that are still expired. The caller has locked them. The statement checks the condition once
-- more, because PostgreSQL looked for running turns and waiting messages before the lock was taken.
-- Index: key of conversations, agent_executions_running, messages_queued
--
-- :before timestamp
-- :conversation_ids text[]
SELECT c.id, c.last_sequence
FROM conversations c
WHERE c.updated_at < :before AND c.tenant_id <> ''
    AND NOT EXISTS (SELECT 1 FROM agent_executions e WHERE e.conversation_id = c.id AND e.status = 'running')
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued')
    AND c.id IN (:conversation_ids)
ORDER BY c.id
