-- Sums the replies of an agent execution, alone and with its sub-agents, and selects the agent's name and whether the
-- agent execution has a call without a reply, or a reservation. A step of hooks has a checkpoint of generation 0, and
-- does not count as a call.
-- Index: key of agent_executions, agent_executions_by_parent, key of execution_checkpoints
--
-- :agent_execution_id text
-- :type_llm_complete text
WITH RECURSIVE below AS (
    -- The agent execution and its descendants. The search reads only the few agent executions of the turn.
    SELECT id, root_execution_id, cut_calls, cut_tokens, cut_nano FROM agent_executions WHERE id = :agent_execution_id
    UNION ALL
    SELECT s.id, s.root_execution_id, s.cut_calls, s.cut_tokens, s.cut_nano
    FROM below
    JOIN agent_executions s
        ON s.parent_execution_id = below.id AND s.root_execution_id = (
            SELECT root_execution_id FROM agent_executions WHERE id = :agent_execution_id
        )
)
SELECT
    t.*, cut.*,
    COALESCE((SELECT agent FROM agent_executions WHERE id = :agent_execution_id), '') AS agent,
    COALESCE((
        SELECT
            e.reserved_tokens > 0 OR (e.settled_generation < e.generation AND NOT EXISTS (
                SELECT 1 FROM execution_checkpoints r
                WHERE r.agent_execution_id = e.id AND r.step_number = e.called_step
                    AND r.checkpoint_type = :type_llm_complete AND r.execution_id = ''
            ))
        FROM agent_executions e
        WHERE e.id = :agent_execution_id
    ), FALSE) AS has_open_call
FROM (
    SELECT
        COUNT(*) FILTER (WHERE k.agent_execution_id = :agent_execution_id AND k.generation > 0) AS calls,
        CAST(COALESCE(SUM(k.input_tokens) FILTER (WHERE k.agent_execution_id = :agent_execution_id), 0) AS BIGINT)
            AS input_tokens,
        CAST(COALESCE(SUM(k.output_tokens) FILTER (WHERE k.agent_execution_id = :agent_execution_id), 0) AS BIGINT)
            AS output_tokens,
        CAST(COALESCE(SUM(k.input_tokens), 0) AS BIGINT) AS spent_input,
        CAST(COALESCE(SUM(k.output_tokens), 0) AS BIGINT) AS spent_output,
        CAST(COALESCE(SUM(k.cached_tokens), 0) AS BIGINT) AS spent_cached,
        CAST(COALESCE(SUM(k.cache_write_tokens), 0) AS BIGINT) AS spent_cache_write,
        CAST(COALESCE(SUM(k.reasoning_tokens), 0) AS BIGINT) AS spent_reasoning,
        CAST(COALESCE(SUM(k.estimated_calls), 0) AS BIGINT) AS spent_estimated,
        CAST(SUM(k.cost_nano) AS BIGINT) AS spent_nano
    FROM execution_checkpoints k
    WHERE k.checkpoint_type = :type_llm_complete
        -- The array makes PostgreSQL look up each agent execution. A join of unknown size would read the whole table.
        AND k.agent_execution_id = ANY(ARRAY(SELECT id FROM below))
) AS t
CROSS JOIN (
    SELECT
        CAST(COALESCE(SUM(cut_calls), 0) AS BIGINT) AS spent_cut_calls,
        CAST(COALESCE(SUM(cut_tokens), 0) AS BIGINT) AS spent_cut_tokens,
        CAST(COALESCE(SUM(cut_nano), 0) AS BIGINT) AS spent_cut_nano
    FROM below
) AS cut
