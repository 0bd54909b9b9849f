-- Counts the tool calls that wait for approvals, by agent. The words of the condition are as in the index.
-- Index: tool_execution_records_approvals, key of agent_executions
--
-- :now timestamp
-- :max_counted bigint  The most calls to count, the oldest first.
SELECT e.agent, COUNT(*) AS calls, MIN(waiting.created_at) AS oldest
FROM (
    SELECT agent_execution_id, created_at
    FROM tool_execution_records
    WHERE status = 'pending' AND approval = 'pending' AND created_at <= :now
    ORDER BY created_at
    LIMIT :max_counted
) AS waiting
JOIN agent_executions e ON e.id = waiting.agent_execution_id
GROUP BY e.agent
