-- Puts a waiting message into the timeline.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
-- :sequence_number bigint
UPDATE messages
SET status = 'taken', agent_execution_id = :agent_execution_id, sequence_number = :sequence_number
WHERE conversation_id = :conversation_id AND id = :message_id AND status = 'queued'
