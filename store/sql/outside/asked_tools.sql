-- Selects the state of a step's calls that are answered from outside.
-- Index: key of tool_execution_records
--
-- :agent_execution_id text
-- :step bigint
-- :now timestamp
SELECT execution_id, kind, status, approval, input_hash, expires_at, CLOCK(:now) AS read_at
FROM tool_execution_records
WHERE agent_execution_id = :agent_execution_id AND step = :step
ORDER BY call_index
