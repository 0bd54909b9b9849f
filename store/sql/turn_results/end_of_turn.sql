-- Selects the answer and the end of a turn, from the batch of events that ended the turn. A caller must have read the
-- turn before.
-- Index: key of agent_execution_events
--
-- :conversation_id text
-- :first_event_id text  The event with which the batch begins.
-- :most_events bigint  The most events that are read for the batch.
-- :batch_key text
-- :assistant_message text  The type of the answer's event.
-- :end_types text[]  The types of events that end a turn.
SELECT
    e.id, e.message_id, e.event_type, e.event_data, e.sequence_number, e.created_at,
    NULL AS generations
FROM agent_execution_events f
JOIN agent_execution_events e
    ON e.conversation_id = f.conversation_id AND e.sequence_number >= f.sequence_number
        AND e.sequence_number < f.sequence_number + :most_events
WHERE f.id = :first_event_id AND f.conversation_id = :conversation_id AND e.batch_key = :batch_key
    AND (e.event_type = :assistant_message OR e.event_type IN (:end_types))
ORDER BY e.sequence_number
LIMIT 2
