-- Selects a tool execution for a person who settles its outcome.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :execution_id text
SELECT agent_execution_id, message_id, step, status, observed_sequence
FROM tool_execution_records
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
