-- Inserts the events of a batch.
-- Index: key of agent_execution_events
-- rows: many
--
-- :event_id text
-- :conversation_id text
-- :message_id text
-- :event_type text
-- :sequence_number bigint
-- :batch_key text
-- :now timestamp
-- :data_bytes bigint  The number of bytes that a read of the data returns.
-- :event_data json
INSERT INTO agent_execution_events (
    id, conversation_id, message_id, event_type, sequence_number, batch_key, created_at, data_bytes,
    event_data
)
VALUES (:event_id, :conversation_id, :message_id, :event_type, :sequence_number, :batch_key, :now, :data_bytes,
    :event_data)
