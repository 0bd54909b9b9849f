-- Inserts the agent execution of a turn. The agent execution has the status running from the insert on.
-- Index: key of conversations
--
-- :agent_execution_id text
-- :conversation_id text
-- :message_id text
-- :agent text
-- :agent_hash text
-- :now timestamp
-- :status_running text
INSERT INTO agent_executions (
    id, conversation_id, message_id, agent, agent_hash, started_at, tenant_id, root_execution_id, depth, status
)
VALUES (
    :agent_execution_id, :conversation_id, :message_id, :agent, :agent_hash, CLOCK(:now),
    (SELECT tenant_id FROM conversations WHERE id = :conversation_id), :agent_execution_id, 0, :status_running
)
