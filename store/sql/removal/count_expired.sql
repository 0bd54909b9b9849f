-- Counts the expired conversations and their events. An expired conversation is unchanged since a time, has no running
-- turn and no waiting message, and is not hidden (`hide_conversation.sql`).
-- Index: none: the statement reads every conversation, for a person who asks before a removal
--
-- :before timestamp
SELECT COUNT(*) AS conversations, CAST(COALESCE(SUM(c.last_sequence), 0) AS BIGINT) AS events
FROM conversations c
WHERE c.updated_at < :before AND c.tenant_id <> ''
    AND NOT EXISTS (SELECT 1 FROM agent_executions e WHERE e.conversation_id = c.id AND e.status = 'running')
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued')
