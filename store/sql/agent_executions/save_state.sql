-- Selects the status of the agent execution, and the sequence number of an event if the event is stored.
-- Index: key of agent_executions, key of agent_execution_events
--
-- :agent_execution_id text
-- :conversation_id text
-- :first_event_id text  The first event of the batch: a stored event means that the batch is stored.
SELECT
    status, steps, message_id,
    (SELECT sequence_number FROM agent_execution_events WHERE id = :first_event_id) AS stored_sequence
FROM agent_executions
WHERE id = :agent_execution_id AND conversation_id = :conversation_id
