-- Selects the kept tries without a reply of an agent execution's steps, in their order.
-- Index: key of call_tries, key of agent_executions, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :after_step bigint  The last step of the page before, or -1.
-- :through_step bigint
-- :row_limit bigint
SELECT
    t.step, t.number, t.generation, t.model, t.worker_id, t.code, t.reason, t.is_final, t.retry_after_ms, t.started_at,
    t.ended_at
FROM call_tries t
WHERE t.agent_execution_id = :agent_execution_id AND t.step > :after_step AND t.step <= :through_step
    AND EXISTS (
        SELECT 1 FROM agent_executions e
        WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id
    )
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
ORDER BY t.step, t.number
LIMIT :row_limit
