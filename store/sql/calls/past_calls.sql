-- Selects a page of the LLM calls of an agent execution with a stored reply, in the order of their steps, without their
-- texts. A step of hooks has a checkpoint of generation 0, and is not returned.
-- Index: key of execution_checkpoints, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?  Without an owner, the caller sees the conversations of every owner.
-- :agent_execution_id text
-- :after_step bigint  The last step of the page before, or -1.
-- :row_limit bigint
SELECT
    k.step_number AS step, k.generation, k.created_at AS stored_at, k.execution_state ->> 'provider' AS provider,
    k.execution_state ->> 'model' AS model, COALESCE(k.execution_state ->> 'finish', '') AS finish,
    k.execution_state ->> 'started_ms' AS started_ms, k.execution_state -> 'sent' AS sent,
    k.input_tokens AS spent_input, k.output_tokens AS spent_output, k.cached_tokens AS spent_cached,
    k.cache_write_tokens AS spent_cache_write, k.reasoning_tokens AS spent_reasoning, k.cost_nano AS spent_nano,
    k.estimated_calls AS spent_estimated, CAST(0 AS BIGINT) AS spent_cut_calls, CAST(0 AS BIGINT) AS spent_cut_tokens,
    CAST(0 AS BIGINT) AS spent_cut_nano
FROM execution_checkpoints k
WHERE k.conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND k.agent_execution_id = :agent_execution_id AND k.step_number > :after_step
    AND k.checkpoint_type = 'llm_complete' AND k.generation > 0
ORDER BY k.step_number
LIMIT :row_limit
