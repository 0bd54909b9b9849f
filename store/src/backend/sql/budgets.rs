//! Texts about budgets, and about the cost of model calls.
//!
//! The texts lock rows always in this order: the agent execution, the conversation's budget, the tenant's day.

use super::SqlText;

/// Adds to the sums of a tenant's day. `select` selects a row of values.
macro_rules! add_to_day {
    ($($select:expr),* $(,)?) => {
        concat!(
            "INSERT INTO usage_days (tenant_id, day, model, slot, calls, input_tokens, output_tokens, cached_tokens, \
             cache_write_tokens, reasoning_tokens, cost_nano, cut_calls, cut_tokens, cut_nano) ",
            $($select,)*
            " ON CONFLICT (tenant_id, day, model, slot) DO UPDATE SET calls = usage_days.calls + excluded.calls, \
             input_tokens = usage_days.input_tokens + excluded.input_tokens, \
             output_tokens = usage_days.output_tokens + excluded.output_tokens, \
             cached_tokens = usage_days.cached_tokens + excluded.cached_tokens, \
             cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens, \
             reasoning_tokens = usage_days.reasoning_tokens + excluded.reasoning_tokens, \
             cost_nano = usage_days.cost_nano + excluded.cost_nano, cut_calls = usage_days.cut_calls + excluded.cut_calls, \
             cut_tokens = usage_days.cut_tokens + excluded.cut_tokens, cut_nano = usage_days.cut_nano + excluded.cut_nano"
        )
    };
}

/// Frees the reservation of an agent execution's call in the conversation's budget, and adds the actual cost. A running
/// agent execution has one call at a time. Without a budget, the statement finds no row and locks none.
macro_rules! settle {
    (
        execution: $execution:literal, conversation: $conversation:literal, tokens: $tokens:literal, nano: $nano:literal,
        if: $condition:literal, lock: $lock:literal
    ) => {
        concat!(
            "UPDATE conversation_budgets AS b SET turn_tokens = b.turn_tokens + ",
            $tokens,
            ", turn_nano = b.turn_nano + ",
            $nano,
            ", conversation_tokens = b.conversation_tokens + ",
            $tokens,
            ", conversation_nano = b.conversation_nano + ",
            $nano,
            ", reserved_tokens = b.reserved_tokens - held.reserved_tokens, \
             reserved_nano = b.reserved_nano - held.reserved_nano FROM (\
             SELECT e.root_execution_id, e.reserved_tokens, e.reserved_nano FROM agent_executions e \
             JOIN conversation_budgets o ON o.conversation_id = e.conversation_id AND o.turn_id = e.root_execution_id \
             WHERE e.id = ",
            $execution,
            " AND e.status = 'running'",
            $condition,
            $lock,
            ") AS held WHERE b.conversation_id = ",
            $conversation,
            " AND b.turn_id = held.root_execution_id"
        )
    };
}

/// A sum over a day of the tenant of the budget `b`.
macro_rules! day_sum {
    ($columns:literal, $day:literal) => {
        concat!(
            "(SELECT CAST(COALESCE(SUM(u.",
            $columns,
            "), 0) AS BIGINT) FROM usage_days u WHERE u.tenant_id = b.tenant_id AND u.day = ",
            $day,
            ")"
        )
    };
}

/// Selects the reservation of an agent execution, together with the called model.
macro_rules! lock_reserved {
    ($lock:literal) => {
        concat!(
            "SELECT e.root_execution_id, e.reserved_tokens, e.reserved_nano, e.reserved_model, \
             COALESCE(d.definition ->> 'provider', '') AS provider, COALESCE(d.definition ->> 'model', '') AS model \
             FROM agent_executions e JOIN agent_definitions d ON d.hash = e.agent_hash \
             WHERE e.id = $1 AND e.conversation_id = $2 AND e.generation <= $3 AND e.reserved_tokens > 0",
            $lock
        )
    };
}

/// Reserves a share of the budget: `$1` agent execution, `$2` conversation, `$3` generation, `$4` step, `$5` tokens and
/// `$6` nano-USD to reserve, `$7` day. A step counts once, regardless of its number of calls.
macro_rules! reserve {
    ($lock:literal) => {
        concat!(
            "UPDATE conversation_budgets AS b SET turn_steps = b.turn_steps + held.new_steps, \
             reserved_tokens = b.reserved_tokens + $5, reserved_nano = b.reserved_nano + $6 FROM (\
             SELECT e.root_execution_id, CASE WHEN e.reserved_step >= $4 THEN 0 ELSE 1 END AS new_steps \
             FROM agent_executions e WHERE e.id = $1 AND e.conversation_id = $2 AND e.generation = $3 \
             AND e.status = 'running' AND e.reserved_tokens = 0",
            $lock,
            ") AS held WHERE b.conversation_id = $2 AND b.turn_id = held.root_execution_id \
             AND (b.max_steps IS NULL OR b.turn_steps + held.new_steps <= b.max_steps) \
             AND (b.max_tokens IS NULL OR b.turn_tokens + b.reserved_tokens + $5 <= b.max_tokens) \
             AND (b.max_nano IS NULL OR b.turn_nano + b.reserved_nano + $6 <= b.max_nano) \
             AND (b.max_conversation_tokens IS NULL \
              OR b.conversation_tokens + b.reserved_tokens + $5 <= b.max_conversation_tokens) \
             AND (b.max_conversation_nano IS NULL \
              OR b.conversation_nano + b.reserved_nano + $6 <= b.max_conversation_nano) \
             AND (b.max_day_tokens IS NULL OR ",
            day_sum!("input_tokens + u.output_tokens + u.cut_tokens", "$7"),
            " + b.reserved_tokens + $5 <= b.max_day_tokens) \
             AND (b.max_day_nano IS NULL OR ",
            day_sum!("cost_nano + u.cut_nano", "$7"),
            " + b.reserved_nano + $6 <= b.max_day_nano)"
        )
    };
}

/// Begins the budget of a turn: `$1` conversation, `$2` turn, `$3` to `$9` the limits. The conversation's cost so far
/// stays. No earlier turn still has a reservation, because a conversation has one turn at a time.
pub(crate) const BEGIN_BUDGET: &str = "INSERT INTO conversation_budgets \
     (conversation_id, turn_id, tenant_id, max_steps, max_tokens, max_nano, max_conversation_tokens, \
      max_conversation_nano, max_day_tokens, max_day_nano) \
     VALUES ($1, $2, (SELECT tenant_id FROM conversations WHERE id = $1), $3, $4, $5, $6, $7, $8, $9) \
     ON CONFLICT (conversation_id) DO UPDATE SET turn_id = excluded.turn_id, tenant_id = excluded.tenant_id, \
     max_steps = excluded.max_steps, max_tokens = excluded.max_tokens, max_nano = excluded.max_nano, \
     max_conversation_tokens = excluded.max_conversation_tokens, \
     max_conversation_nano = excluded.max_conversation_nano, max_day_tokens = excluded.max_day_tokens, \
     max_day_nano = excluded.max_day_nano, turn_steps = 0, turn_tokens = 0, turn_nano = 0, reserved_tokens = 0, \
     reserved_nano = 0";

/// The parameters of `reserve!`. PostgreSQL also notes the reservation in the same statement, with `$8` model or NULL.
/// SQLite needs [`NOTE_RESERVED`] afterwards.
pub(crate) const RESERVE: SqlText = SqlText {
    sqlite: reserve!(""),
    postgres: concat!(
        "WITH let_through AS (",
        reserve!(" FOR NO KEY UPDATE"),
        " RETURNING b.conversation_id) UPDATE agent_executions SET reserved_step = $4, reserved_tokens = $5, \
         reserved_nano = $6, reserved_model = $8 WHERE id = $1 AND EXISTS (SELECT 1 FROM let_through)"
    ),
};

/// `$1` agent execution, `$2` step, `$3` tokens, `$4` nano-USD, `$5` model or NULL.
pub(crate) const NOTE_RESERVED: &str = "UPDATE agent_executions SET reserved_step = $2, reserved_tokens = $3, \
     reserved_nano = $4, reserved_model = $5 WHERE id = $1";

/// `$1` agent execution, `$2` conversation, `$3` day. Selects the limits and sums that decide about a call.
pub(crate) const BUDGET: &str = concat!(
    "SELECT b.max_steps, b.max_tokens, b.max_nano, b.max_conversation_tokens, b.max_conversation_nano, \
     b.max_day_tokens, b.max_day_nano, b.turn_steps, b.turn_tokens, b.turn_nano, b.conversation_tokens, \
     b.conversation_nano, b.reserved_tokens, b.reserved_nano, ",
    day_sum!("input_tokens + u.output_tokens + u.cut_tokens", "$3"),
    " AS day_tokens, ",
    day_sum!("cost_nano + u.cut_nano", "$3"),
    " AS day_nano, e.generation, e.reserved_step, e.reserved_tokens AS own_tokens \
     FROM agent_executions e JOIN conversation_budgets b \
     ON b.conversation_id = e.conversation_id AND b.turn_id = e.root_execution_id \
     WHERE e.id = $1 AND e.conversation_id = $2 AND e.status = 'running'"
);

/// `$1` agent execution, `$2` conversation, `$3` the largest valid generation. Selects the reservation of the agent
/// execution's call, and locks the agent execution.
pub(crate) const LOCK_RESERVED: SqlText = SqlText {
    sqlite: lock_reserved!(""),
    postgres: lock_reserved!(" FOR NO KEY UPDATE OF e"),
};

/// `$1` conversation, `$2` turn, `$3` tokens and `$4` nano-USD reserved, `$5` tokens and `$6` nano-USD that count as
/// used.
pub(crate) const FREE: &str = "UPDATE conversation_budgets SET turn_tokens = turn_tokens + $5, \
     turn_nano = turn_nano + $6, conversation_tokens = conversation_tokens + $5, \
     conversation_nano = conversation_nano + $6, reserved_tokens = reserved_tokens - $3, \
     reserved_nano = reserved_nano - $4 WHERE conversation_id = $1 AND turn_id = $2";

/// `$1` agent execution.
pub(crate) const NOTE_FREED: &str =
    "UPDATE agent_executions SET reserved_tokens = 0, reserved_nano = 0 WHERE id = $1";

/// `$1` conversation, `$2` day, `$3` model, `$4` slot, `$5` tokens, `$6` nano-USD of a cut call.
pub(crate) const ADD_CUT_CALL: &str = add_to_day!(
    "SELECT tenant_id, $2, $3, $4, 0, 0, 0, 0, 0, 0, 0, 1, $5, $6 FROM conversations WHERE id = $1"
);

/// `$1` agent execution, `$2` conversation, `$3` tokens, `$4` nano-USD.
pub(crate) const SETTLE: &str = settle!(
    execution: "$1", conversation: "$2", tokens: "$3", nano: "$4", if: "", lock: ""
);

/// `$1` conversation, `$2` day, `$3` model, `$4` slot, `$5` input, `$6` output, `$7` cached, `$8` cache write and `$9`
/// reasoning tokens, `$10` nano-USD of a call with a stored answer.
pub(crate) const ADD_CALL: &str = add_to_day!(
    "SELECT tenant_id, $2, $3, $4, 1, $5, $6, $7, $8, $9, $10, 0, 0, 0 FROM conversations WHERE id = $1"
);

/// The sums of rows of `usage_days`, as [`UsageDay`](crate::api::UsageDay) reads them.
macro_rules! usage_sums {
    () => {
        "CAST(SUM(calls) AS BIGINT) AS calls, \
         CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, \
         CAST(SUM(cached_tokens) AS BIGINT) AS cached_tokens, \
         CAST(SUM(cache_write_tokens) AS BIGINT) AS cache_write_tokens, \
         CAST(SUM(reasoning_tokens) AS BIGINT) AS reasoning_tokens, CAST(SUM(cost_nano) AS BIGINT) AS cost_nano, \
         CAST(SUM(cut_calls) AS BIGINT) AS cut_calls, CAST(SUM(cut_tokens) AS BIGINT) AS cut_tokens, \
         CAST(SUM(cut_nano) AS BIGINT) AS cut_nano"
    };
}

/// Selects the sums of a tenant: `$1` tenant, `$2` first day, `$3` last day, `$4` day and `$5` model of the cursor,
/// `$6` limit.
pub(crate) const USAGE_DAYS: &str = concat!(
    "SELECT day, model, ",
    usage_sums!(),
    " FROM usage_days \
     WHERE tenant_id = $1 AND day >= $2 AND day <= $3 AND (day, model) > ($4, $5) \
     GROUP BY day, model ORDER BY day, model LIMIT $6"
);

/// `$1` before this day.
pub(crate) const FORGET_USAGE: &str = "DELETE FROM usage_days WHERE day < $1";
