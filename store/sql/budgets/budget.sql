-- Selects the limits and sums that decide about the call of a running agent execution.
-- Index: key of agent_executions, key of conversation_budgets, key of usage_days
--
-- :agent_execution_id text
-- :conversation_id text
-- :day text  The current day in UTC.
SELECT
    b.max_steps, b.max_tokens, b.max_nano, b.max_conversation_tokens, b.max_conversation_nano, b.max_day_tokens,
    b.max_day_nano, b.turn_steps, b.turn_tokens, b.turn_nano, b.conversation_tokens, b.conversation_nano,
    b.reserved_tokens, b.reserved_nano,
    (SELECT CAST(COALESCE(SUM(u.input_tokens + u.output_tokens + u.cut_tokens), 0) AS BIGINT)
     FROM usage_days u
     WHERE u.tenant_id = b.tenant_id AND u.day = :day) AS day_tokens,
    (SELECT CAST(COALESCE(SUM(u.cost_nano + u.cut_nano), 0) AS BIGINT)
     FROM usage_days u
     WHERE u.tenant_id = b.tenant_id AND u.day = :day) AS day_nano,
    e.generation, e.reserved_step, e.reserved_tokens AS own_tokens
FROM agent_executions e
JOIN conversation_budgets b ON b.conversation_id = e.conversation_id AND b.turn_id = e.root_execution_id
WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.status = 'running'
