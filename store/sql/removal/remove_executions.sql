-- Removes the agent executions of conversations.
-- Index: agent_executions_by_start
--
-- :conversation_ids text[]
DELETE FROM agent_executions
WHERE conversation_id IN (:conversation_ids)
