-- Inserts the reply of a step, unless the step has a reply, or the conversation has one of the call ids. An obsolete
-- call inserts nothing: its agent execution has ended, a newer call was claimed, or a newer run owns the conversation
-- (invariant 11, one run). These rows are read without their locks, as of the statement's start: a reply in the
-- database by then counts as earlier than a newer call or run. The same statement settles the reservation of the call
-- (`budgets/settle.sql`), frees the reservation, and counts the call in the tenant's day. A step of hooks has
-- generation 0, and is not counted as a call. The statement returns the number of inserted rows. The clause `ON
-- CONFLICT` names no key, as in `insert_checkpoint.sql`.
-- Index: key of tool_execution_records, key of execution_checkpoints, key of agent_executions
-- Index: key of conversation_budgets, key of conversations, key of usage_days
--
-- :checkpoint_id text
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
-- :checkpoint_type text
-- :execution_id text  Empty: a reply belongs to no tool execution.
-- :step bigint
-- :generation bigint  The generation of the call; 0 for a step of hooks.
-- :input_tokens bigint
-- :output_tokens bigint
-- :now timestamp
-- :execution_state json
-- :cached_tokens bigint
-- :cache_write_tokens bigint
-- :reasoning_tokens bigint
-- :cost_nano bigint?
-- :estimated_calls bigint
-- :call_ids text[]  The ids of the reply's calls.
-- :day text  The current day in UTC.
-- :model text  `provider/model`.
-- :slot bigint
-- :used_tokens bigint
-- :used_nano bigint
-- :status_running text
-- :run_epoch bigint  The epoch of the caller's run.
WITH reply AS (
    INSERT INTO execution_checkpoints (
        id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, generation,
        input_tokens, output_tokens, created_at, execution_state, cached_tokens, cache_write_tokens, reasoning_tokens,
        cost_nano, estimated_calls
    )
    SELECT
        :checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, :execution_id, :step,
        :generation, :input_tokens, :output_tokens, :now, :execution_state, :cached_tokens, :cache_write_tokens,
        :reasoning_tokens, :cost_nano, :estimated_calls
    WHERE EXISTS (
        SELECT 1 FROM agent_executions e JOIN conversations c ON c.id = e.conversation_id
        WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.status = :status_running
            AND c.run_epoch <= :run_epoch AND (:generation = 0 OR e.generation <= :generation)
    )
    AND NOT EXISTS (
        SELECT 1 FROM tool_execution_records
        WHERE conversation_id = :conversation_id AND call_id IN (:call_ids)
    )
    ON CONFLICT DO NOTHING
    RETURNING conversation_id
),
settled AS (
    UPDATE conversation_budgets AS b
    SET turn_tokens = b.turn_tokens + :used_tokens, turn_nano = b.turn_nano + :used_nano,
        conversation_tokens = b.conversation_tokens + :used_tokens,
        conversation_nano = b.conversation_nano + :used_nano,
        reserved_tokens = b.reserved_tokens - held.reserved_tokens,
        reserved_nano = b.reserved_nano - held.reserved_nano
    FROM (
        SELECT e.root_execution_id, e.reserved_tokens, e.reserved_nano
        FROM agent_executions e
        JOIN conversation_budgets o ON o.conversation_id = e.conversation_id AND o.turn_id = e.root_execution_id
        WHERE e.id = :agent_execution_id AND e.status = 'running'
            AND EXISTS (SELECT 1 FROM reply)
        FOR NO KEY UPDATE OF e
    ) AS held
    WHERE b.conversation_id = :conversation_id AND b.turn_id = held.root_execution_id
    RETURNING b.conversation_id
),
freed AS (
    UPDATE agent_executions
    SET reserved_tokens = 0, reserved_nano = 0
    WHERE id = :agent_execution_id AND reserved_tokens > 0 AND EXISTS (SELECT 1 FROM reply)
        AND (SELECT COUNT(*) FROM settled) < 2
    RETURNING id
),
-- The day comes last, in the order of locks: agent execution, budget, day.
day AS (
    INSERT INTO usage_days (
        tenant_id, day, model, agent, slot, calls, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
        reasoning_tokens, cost_nano, cut_calls, cut_tokens, cut_nano, estimated_calls
    )
    SELECT
        c.tenant_id, :day, :model, e.agent, :slot, 1, :input_tokens, :output_tokens, :cached_tokens,
        :cache_write_tokens, :reasoning_tokens, COALESCE(:cost_nano, 0), 0, 0, 0, :estimated_calls
    FROM reply
    JOIN conversations c ON c.id = reply.conversation_id
    JOIN agent_executions e ON e.id = :agent_execution_id
    WHERE :generation > 0 AND (SELECT COUNT(*) FROM freed) < 2
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
)
SELECT COUNT(*) FROM reply
