-- Locks a hidden conversation, the newest first. The statement skips a conversation that another process removes.
-- Index: conversations_by_tenant
SELECT id
FROM conversations
WHERE tenant_id = ''
ORDER BY active_at DESC, id DESC
LIMIT 1
FOR UPDATE SKIP LOCKED
