-- Selects running agent executions: first those that the given workers run, then the newest. `is_held` is true for
-- an agent execution, or a tool, of one of the workers.
-- Index: agent_executions_running, tool_execution_records_open
--
-- :worker_ids text[]
-- :worker_id_length integer  The claimant of a tool begins with the worker's id.
-- :row_limit bigint
SELECT
    e.conversation_id,
    (SELECT c.execution_id FROM tool_execution_records c
     WHERE c.conversation_id = e.conversation_id AND c.call_id = e.parent_tool_call_id) AS sub_agent_call,
    (e.worker_id IN (:worker_ids)
     OR EXISTS (
         SELECT 1 FROM tool_execution_records t
         WHERE t.agent_execution_id = e.id AND t.observed_sequence IS NULL
             AND substr(t.claimant, 1, :worker_id_length) IN (:worker_ids)
     )) AS is_held
FROM agent_executions e
WHERE e.status = 'running'
ORDER BY is_held DESC, e.started_at DESC, e.id
LIMIT :row_limit
