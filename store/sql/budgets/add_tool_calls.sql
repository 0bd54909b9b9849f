-- Adds the tool calls of an agent execution that ends to the sums of the tenant's day. The order of the tools is the
-- order of the locks.
-- Index: key of agent_executions, key of conversations, key of tool_execution_records, key of tool_usage_days
--
-- :agent_execution_id text
-- :day text  The current day in UTC.
-- :slot bigint
INSERT INTO tool_usage_days (tenant_id, day, tool, agent, slot, calls, failed_calls, duration_ms)
SELECT
    c.tenant_id, :day, r.tool_name, e.agent, :slot, COUNT(*), COUNT(*) FILTER (WHERE r.is_error),
    CAST(SUM(r.duration_ms) AS BIGINT)
FROM agent_executions e
JOIN conversations c ON c.id = e.conversation_id
JOIN tool_execution_records r ON r.agent_execution_id = e.id
WHERE e.id = :agent_execution_id
GROUP BY c.tenant_id, r.tool_name, e.agent
ORDER BY r.tool_name
ON CONFLICT (tenant_id, day, tool, agent, slot) DO UPDATE
SET calls = tool_usage_days.calls + excluded.calls,
    failed_calls = tool_usage_days.failed_calls + excluded.failed_calls,
    duration_ms = tool_usage_days.duration_ms + excluded.duration_ms
