-- Inserts the agent execution of a sub-agent. The agent execution has the status running from the insert on.
-- Index: key of conversations
--
-- :agent_execution_id text
-- :conversation_id text
-- :message_id text
-- :agent text
-- :agent_hash text
-- :now timestamp
-- :status_running text
-- :parent_execution_id text
-- :root_execution_id text
-- :depth bigint
-- :parent_tool_call_id text  The model's id of the call that started the sub-agent.
INSERT INTO agent_executions (
    id, conversation_id, message_id, agent, agent_hash, started_at, parent_execution_id, root_execution_id, depth,
    parent_tool_call_id, status, tenant_id
)
VALUES (
    :agent_execution_id, :conversation_id, :message_id, :agent, :agent_hash, CLOCK(:now),
    :parent_execution_id, :root_execution_id, :depth, :parent_tool_call_id, :status_running,
    (SELECT tenant_id FROM conversations WHERE id = :conversation_id)
)
