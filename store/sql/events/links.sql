-- Selects the calls that started the given sub-agents, and the approved inputs and templates of titles of the given
-- tool executions.
-- Index: key of agent_executions, agent_executions_by_message, key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :log_id text
-- :agent_execution_ids text[]
-- :execution_ids text[]
SELECT id, parent_tool_call_id AS call_id, NULL AS tool_input, NULL AS title_template
FROM agent_executions
WHERE conversation_id = :conversation_id AND parent_tool_call_id IS NOT NULL AND id IN (:agent_execution_ids)
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR
        owner_id = :owner_id)
            AND log_id = :log_id
    )
UNION ALL
SELECT execution_id, NULL, tool_input, title_template
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND approval = 'approved' AND execution_id IN (:execution_ids)
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR
        owner_id = :owner_id)
            AND log_id = :log_id
    )
