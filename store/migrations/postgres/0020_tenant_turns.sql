-- Whose turns run and wait: what a tenant's limit of concurrent turns counts.
ALTER TABLE messages ADD COLUMN tenant_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agent_executions ADD COLUMN tenant_id TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE messages SET tenant_id = (SELECT tenant_id FROM conversations WHERE id = conversation_id);
UPDATE agent_executions SET tenant_id = (SELECT tenant_id FROM conversations WHERE id = conversation_id);
CREATE INDEX messages_queued_of_tenant ON messages (tenant_id, conversation_id) WHERE status = 'queued';
CREATE INDEX agent_executions_running_of_tenant ON agent_executions (tenant_id, conversation_id)
    WHERE status = 'running';

-- Conversations that were deleted lately: a worker thought dead must not create them again.
CREATE TABLE deleted_conversations (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    deleted_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX deleted_conversations_by_age ON deleted_conversations (deleted_at);
