-- Selects the newest checkpoints of an agent execution. The newest checkpoint comes first. A tool may begin and end
-- within a millisecond; the end counts as newer.
-- Index: key of execution_checkpoints, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :row_limit bigint
SELECT
    k.checkpoint_type, k.step_number AS step, NULLIF(k.execution_id, '') AS execution_id, k.generation,
    k.created_at AS stored_at
FROM execution_checkpoints k
WHERE k.conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND k.agent_execution_id = :agent_execution_id
ORDER BY k.step_number DESC, k.created_at DESC, (k.checkpoint_type = 'tool_complete') DESC, k.id DESC
LIMIT :row_limit
