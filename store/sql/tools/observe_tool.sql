-- Marks a tool execution with a stored end as observed.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :execution_id text
-- :observed_sequence bigint?  The sequence number of the observe.
UPDATE tool_execution_records
SET observed_sequence = :observed_sequence
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
