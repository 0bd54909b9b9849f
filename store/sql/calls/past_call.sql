-- Selects the stored reply of an LLM call, with the definition of the agent.
-- Index: key of execution_checkpoints, key of conversations, key of agent_executions, key of agent_definitions
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :step bigint
SELECT k.created_at AS stored_at, k.execution_state AS state, d.definition AS agent, e.message_id
FROM execution_checkpoints k
JOIN agent_executions e ON e.id = k.agent_execution_id
JOIN agent_definitions d ON d.hash = e.agent_hash
WHERE k.conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND k.agent_execution_id = :agent_execution_id AND k.step_number = :step
    AND k.checkpoint_type = 'llm_complete' AND k.execution_id = '' AND k.generation > 0
