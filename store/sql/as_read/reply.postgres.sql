-- Selects the conversation, its running agent execution and the stored reply of a step, for a save without a lock. The
-- statement returns no row when the batch is stored, when the agent execution is not running, or when a newer run owns
-- the conversation. Only an end reads the sums of the replies. An end also demands that no tool is open and no
-- reservation is left.
-- Index: key of conversations, key of agent_executions, key of execution_checkpoints, agent_executions_by_root,
-- Index: key of agent_execution_events, tool_execution_records_open
--
-- :conversation_id text
-- :agent_execution_id text
-- :message_id text
-- :status_running text
-- :run_epoch bigint
-- :first_event_id text  The first event of the batch: a stored event means that the batch is stored.
-- :step bigint
-- :type_llm_complete text
-- :is_end boolean
SELECT c.log_id, c.last_sequence, e.steps, e.agent, k.execution_state, t.*, cut.*, FALSE AS has_open_call
FROM (
    SELECT id, log_id, last_sequence
    FROM conversations
    WHERE id = :conversation_id AND run_epoch <= :run_epoch
) AS c
JOIN agent_executions e
    ON e.conversation_id = c.id AND e.id = :agent_execution_id AND e.message_id = :message_id
    AND e.status = :status_running
JOIN execution_checkpoints k
    ON k.agent_execution_id = e.id AND k.step_number = :step AND k.checkpoint_type = :type_llm_complete
    AND k.execution_id = ''
CROSS JOIN LATERAL (
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
        AND k.agent_execution_id = ANY(ARRAY(
            SELECT id FROM agent_executions WHERE :is_end AND root_execution_id = :agent_execution_id
        ))
) AS t
CROSS JOIN (
    SELECT
        CAST(COALESCE(SUM(cut_calls), 0) AS BIGINT) AS spent_cut_calls,
        CAST(COALESCE(SUM(cut_tokens), 0) AS BIGINT) AS spent_cut_tokens,
        CAST(COALESCE(SUM(cut_nano), 0) AS BIGINT) AS spent_cut_nano
    FROM agent_executions
    WHERE :is_end AND root_execution_id = :agent_execution_id
) AS cut
WHERE NOT EXISTS (SELECT 1 FROM agent_execution_events WHERE id = :first_event_id)
    AND NOT (:is_end AND EXISTS (
        SELECT 1 FROM tool_execution_records o
        WHERE o.agent_execution_id = :agent_execution_id AND o.observed_sequence IS NULL
    ))
    AND NOT (:is_end AND e.reserved_tokens > 0)
