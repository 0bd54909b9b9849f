-- Selects the running agent executions of a conversation with the notes of their failed calls. The notes say which
-- calls the provider has refused.
-- Index: agent_executions_running, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :row_limit bigint
SELECT id, generation, model_chain
FROM agent_executions
WHERE conversation_id = :conversation_id AND status = 'running' AND model_chain IS NOT NULL
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
ORDER BY started_at
LIMIT :row_limit
