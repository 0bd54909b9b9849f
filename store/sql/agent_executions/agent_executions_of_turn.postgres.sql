-- Selects a page of a turn's agent executions, the oldest first. Each agent execution comes with the sums of its
-- replies, and a sub-agent with the call that started the sub-agent.
-- Index: agent_executions_by_start, agent_executions_by_message, key of tool_execution_records
-- Index: key of execution_checkpoints, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :after_started_at timestamp
-- :after_id text
-- :row_limit bigint
-- :message_id text
SELECT
    e.id, e.message_id, e.agent, e.status, e.depth, e.parent_execution_id, e.root_execution_id, e.steps, e.error_code,
    e.started_at, e.finished_at, t.execution_id, t.call_id, t.tool_name, t.tool_input,
    e.cut_calls AS spent_cut_calls, e.cut_tokens AS spent_cut_tokens, e.cut_nano AS spent_cut_nano,
    s.*
FROM agent_executions e
LEFT JOIN tool_execution_records t
    ON t.conversation_id = e.conversation_id AND t.call_id = e.parent_tool_call_id
CROSS JOIN LATERAL (
    SELECT
        CAST(COALESCE(SUM(k.input_tokens), 0) AS BIGINT) AS spent_input,
        CAST(COALESCE(SUM(k.output_tokens), 0) AS BIGINT) AS spent_output,
        CAST(COALESCE(SUM(k.cached_tokens), 0) AS BIGINT) AS spent_cached,
        CAST(COALESCE(SUM(k.cache_write_tokens), 0) AS BIGINT) AS spent_cache_write,
        CAST(COALESCE(SUM(k.reasoning_tokens), 0) AS BIGINT) AS spent_reasoning,
        CAST(COALESCE(SUM(k.estimated_calls), 0) AS BIGINT) AS spent_estimated,
        CAST(SUM(k.cost_nano) AS BIGINT) AS spent_nano
    FROM execution_checkpoints k
    WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete'
) AS s
WHERE e.conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND (e.started_at, e.id) > (:after_started_at, :after_id) AND e.message_id = :message_id
ORDER BY e.started_at, e.id
LIMIT :row_limit
