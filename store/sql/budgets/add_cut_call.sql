-- Adds a cut call to the sums of the tenant's day. The full reservation counts as used.
-- Index: key of agent_executions, key of conversations, key of usage_days
--
-- :conversation_id text
-- :agent_execution_id text
-- :day text  The current day in UTC.
-- :model text  `provider/model`.
-- :slot bigint
-- :cut_tokens bigint
-- :cut_nano bigint
INSERT INTO usage_days (
    tenant_id, day, model, agent, slot, calls, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
    reasoning_tokens, cost_nano, cut_calls, cut_tokens, cut_nano, estimated_calls
)
SELECT c.tenant_id, :day, :model, e.agent, :slot, 0, 0, 0, 0, 0, 0, 0, 1, :cut_tokens, :cut_nano, 0
FROM conversations c
JOIN agent_executions e ON e.id = :agent_execution_id
WHERE c.id = :conversation_id
ON CONFLICT (tenant_id, day, model, agent, slot) DO UPDATE
SET calls = usage_days.calls + excluded.calls,
    input_tokens = usage_days.input_tokens + excluded.input_tokens,
    output_tokens = usage_days.output_tokens + excluded.output_tokens,
    cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens,
    reasoning_tokens = usage_days.reasoning_tokens + excluded.reasoning_tokens,
    cost_nano = usage_days.cost_nano + excluded.cost_nano,
    cut_calls = usage_days.cut_calls + excluded.cut_calls,
    cut_tokens = usage_days.cut_tokens + excluded.cut_tokens,
    cut_nano = usage_days.cut_nano + excluded.cut_nano,
    estimated_calls = usage_days.estimated_calls + excluded.estimated_calls
