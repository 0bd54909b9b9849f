-- Reserves a share of the budget for a model call. The statement changes no row when the share would exceed a limit, or
-- when the agent execution has another call or a reservation. A step counts once, regardless of its number of calls.
-- `note_reserved.sql` then notes the reservation.
-- Index: key of agent_executions, key of conversation_budgets, key of usage_days
--
-- :agent_execution_id text
-- :conversation_id text
-- :generation bigint
-- :step bigint
-- :tokens bigint  The tokens to reserve.
-- :nano bigint  The nano-USD to reserve.
-- :day text  The current day in UTC.
UPDATE conversation_budgets AS b
SET turn_steps = b.turn_steps + held.new_steps, reserved_tokens = b.reserved_tokens + :tokens,
    reserved_nano = b.reserved_nano + :nano
FROM (
    SELECT e.root_execution_id, CASE WHEN e.reserved_step >= :step THEN 0 ELSE 1 END AS new_steps
    FROM agent_executions e
    WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.generation = :generation
        AND e.status = 'running' AND e.reserved_tokens = 0
) AS held
WHERE b.conversation_id = :conversation_id AND b.turn_id = held.root_execution_id
    AND (b.max_steps IS NULL OR b.turn_steps + held.new_steps <= b.max_steps)
    AND (b.max_tokens IS NULL OR b.turn_tokens + b.reserved_tokens + :tokens <= b.max_tokens)
    AND (b.max_nano IS NULL OR b.turn_nano + b.reserved_nano + :nano <= b.max_nano)
    AND (b.max_conversation_tokens IS NULL
        OR b.conversation_tokens + b.reserved_tokens + :tokens <= b.max_conversation_tokens)
    AND (b.max_conversation_nano IS NULL
        OR b.conversation_nano + b.reserved_nano + :nano <= b.max_conversation_nano)
    AND (b.max_day_tokens IS NULL
        OR (SELECT CAST(COALESCE(SUM(u.input_tokens + u.output_tokens + u.cut_tokens), 0) AS BIGINT)
            FROM usage_days u
            WHERE u.tenant_id = b.tenant_id AND u.day = :day)
            + b.reserved_tokens + :tokens <= b.max_day_tokens)
    AND (b.max_day_nano IS NULL
        OR (SELECT CAST(COALESCE(SUM(u.cost_nano + u.cut_nano), 0) AS BIGINT)
            FROM usage_days u
            WHERE u.tenant_id = b.tenant_id AND u.day = :day)
            + b.reserved_nano + :nano <= b.max_day_nano)
