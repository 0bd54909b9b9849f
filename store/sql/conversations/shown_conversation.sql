-- Selects a conversation that the caller may see, with the work that goes on, and with the sums over the LLM calls. The
-- row has the sums of ended turns. The sums of the running turn come from the turn's replies.
-- Index: key of conversations, execution_checkpoints_by_message, agent_executions_running, agent_executions_by_message
-- Index: messages_queued
-- Index: tool_execution_records_waiting
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :type_llm_complete text
SELECT
    id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title,
    NULLIF(model, '') AS model, message_count, last_sequence, created_at, active_at, metadata,
    is_running, has_queued, waiting_approvals, waiting_client_tools,
    spent_input + running_input AS spent_input, spent_output + running_output AS spent_output,
    spent_cached + running_cached AS spent_cached, spent_cache_write + running_cache_write AS spent_cache_write,
    spent_reasoning + running_reasoning AS spent_reasoning, spent_estimated + running_estimated AS spent_estimated,
    spent_cut_calls + running_cut_calls AS spent_cut_calls, spent_cut_tokens + running_cut_tokens AS spent_cut_tokens,
    spent_cut_nano + running_cut_nano AS spent_cut_nano,
    COALESCE(spent_nano + running_nano, spent_nano, running_nano) AS spent_nano
FROM conversations_at_work
CROSS JOIN (
    SELECT
        CAST(COALESCE(SUM(k.input_tokens), 0) AS BIGINT) AS running_input,
        CAST(COALESCE(SUM(k.output_tokens), 0) AS BIGINT) AS running_output,
        CAST(COALESCE(SUM(k.cached_tokens), 0) AS BIGINT) AS running_cached,
        CAST(COALESCE(SUM(k.cache_write_tokens), 0) AS BIGINT) AS running_cache_write,
        CAST(COALESCE(SUM(k.reasoning_tokens), 0) AS BIGINT) AS running_reasoning,
        CAST(COALESCE(SUM(k.estimated_calls), 0) AS BIGINT) AS running_estimated,
        CAST(SUM(k.cost_nano) AS BIGINT) AS running_nano
    FROM execution_checkpoints k
    WHERE k.conversation_id = :conversation_id AND k.checkpoint_type = :type_llm_complete
        AND k.message_id = (
            SELECT t.message_id FROM running_turns t
            WHERE t.conversation_id = :conversation_id
            ORDER BY t.started_at
            LIMIT 1
        )
) AS running
CROSS JOIN (
    SELECT
        CAST(COALESCE(SUM(e.cut_calls), 0) AS BIGINT) AS running_cut_calls,
        CAST(COALESCE(SUM(e.cut_tokens), 0) AS BIGINT) AS running_cut_tokens,
        CAST(COALESCE(SUM(e.cut_nano), 0) AS BIGINT) AS running_cut_nano
    FROM agent_executions e
    WHERE e.conversation_id = :conversation_id
        AND e.message_id = (
            SELECT t.message_id FROM running_turns t
            WHERE t.conversation_id = :conversation_id
            ORDER BY t.started_at
            LIMIT 1
        )
) AS running_cut
WHERE id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
