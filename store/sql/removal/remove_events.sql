-- Removes the events of conversations.
-- Index: key of agent_execution_events
--
-- :conversation_ids text[]
DELETE FROM agent_execution_events
WHERE conversation_id IN (:conversation_ids)
