-- Locks the agent executions of conversations. After the lock, a worker that was thought dead adds no more checkpoints,
-- and later statements see the checkpoints from before the lock.
-- Index: agent_executions_by_start
--
-- :conversation_ids text[]
SELECT id, conversation_id, message_id, status = 'running' AS is_running
FROM agent_executions
WHERE conversation_id IN (:conversation_ids)
FOR UPDATE
