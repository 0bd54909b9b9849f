-- Selects the turns whose hooks wait for their workflow, the longest waiting first. A conversation whose rows are being
-- removed has no tenant.
-- Index: agent_executions_after_turn, key of conversations
--
-- :due_before timestamp
-- :row_limit bigint
SELECT e.tenant_id, e.conversation_id, e.message_id, e.id AS agent_execution_id, e.agent_hash, e.steps,
    e.after_turn_queue AS tool_queue
FROM agent_executions e
WHERE e.after_turn_due <= :due_before
    AND (SELECT c.tenant_id FROM conversations c WHERE c.id = e.conversation_id) <> ''
ORDER BY e.after_turn_due
LIMIT :row_limit
