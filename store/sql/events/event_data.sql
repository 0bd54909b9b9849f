-- Selects the data of an event.
-- Index: key of agent_execution_events
--
-- :event_id text
SELECT event_data
FROM agent_execution_events
WHERE id = :event_id
