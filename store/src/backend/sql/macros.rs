//! Parts of SQL texts. The parts are macros because `concat!` takes only literals and macros.

/// Adds a row lock in PostgreSQL. SQLite needs no row lock, because its transaction holds the whole file.
macro_rules! locking {
    ($($text:tt)*) => {
        SqlText { sqlite: concat!($($text)*), postgres: concat!($($text)*, " FOR UPDATE") }
    };
}

/// Makes a condition: `before` is in the list that `dialect::list` binds to `$n`. The text does not depend on the
/// length of the list.
macro_rules! among {
    ($before:expr, $list:literal, $after:literal) => {
        SqlText {
            sqlite: concat!(
                $before,
                " IN (SELECT value FROM json_each(",
                $list,
                "))",
                $after
            ),
            postgres: concat!($before, " = ANY(", $list, ")", $after),
        }
    };
}

/// The condition: the caller with tenant `$2` and owner `$3` may see the conversation `$1`. Without an owner, the
/// caller sees the conversations of every owner.
macro_rules! visible {
    () => {
        "tenant_id = $2 AND (CAST($3 AS TEXT) IS NULL OR owner_id = $3)"
    };
}

/// The condition `visible`, in a text about another table.
macro_rules! of_visible_conversation {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
            visible!(),
            ")"
        )
    };
}

/// True when the caller may see the conversation `$1` and `$log` is the conversation's log. The parameters are those of
/// `visible!`.
macro_rules! of_visible_log {
    ($log:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
            visible!(),
            " AND log_id = ",
            $log,
            ")"
        )
    };
}

/// True unless a run with a larger epoch owns the conversation. The condition reads the conversation without the lock,
/// as of the statement's start, because a claim in the database by then counts as earlier.
macro_rules! run_is_newest {
    ($conversation:literal, $epoch:literal) => {
        concat!(
            "(SELECT run_epoch FROM conversations WHERE conversations.id = ",
            $conversation,
            ") <= ",
            $epoch
        )
    };
}

/// The columns of a [`Conversation`](crate::Conversation). An empty title or owner means no title or owner.
macro_rules! conversation_columns {
    () => {
        "id, log_id, tenant_id, NULLIF(owner_id, '') AS owner_id, agent, NULLIF(title, '') AS title, \
         message_count, last_sequence, created_at, updated_at"
    };
}

/// Selects rows up to a limit of rows and a limit of bytes. `bytes` is the length of a row. The result has one row
/// beyond the limit if more rows exist. The first row always fits. The rows carry their rank, and come in no particular
/// order ([`RankedRow`](crate::rows::ranked::RankedRow)).
macro_rules! page {
    (
        columns: $columns:expr, bytes: $bytes:expr, from: $from:expr, order: $order:literal,
        limit: $limit:literal, most_bytes: $most_bytes:literal
    ) => {
        concat!(
            "SELECT * FROM (SELECT found.*, ROW_NUMBER() OVER in_order AS page_rank, \
             SUM(bytes) OVER in_order AS total_bytes FROM (SELECT ",
            $columns,
            ", CAST(",
            $bytes,
            " AS INTEGER) AS bytes FROM ",
            $from,
            " ORDER BY ",
            $order,
            " LIMIT ",
            $limit,
            ") AS found WINDOW in_order AS (ORDER BY ",
            $order,
            " ROWS UNBOUNDED PRECEDING)) AS measured WHERE page_rank <= 2 OR total_bytes - bytes <= ",
            $most_bytes
        )
    };
}

/// Selects the newest turn of a conversation with the status running. The engine runs one turn at a time. Several rows
/// can have the status running in data older than this rule, or after a turn was terminated from outside. Only the
/// newest turn is really running.
macro_rules! running_turn {
    ($column:literal, $conversation:literal) => {
        concat!(
            "(SELECT e.",
            $column,
            " FROM agent_executions e WHERE e.conversation_id = ",
            $conversation,
            " AND e.status = 'running' AND e.parent_execution_id IS NULL ORDER BY e.started_at DESC LIMIT 1)"
        )
    };
}

/// Selects the step of the last `llm_complete` of the agent execution `r`.
macro_rules! last_checkpoint {
    () => {
        "(SELECT MAX(k.step_number) FROM execution_checkpoints k \
         WHERE k.agent_execution_id = r.id AND k.checkpoint_type = 'llm_complete')"
    };
}

/// The small columns of a tool record, then the columns for a batch. `full_result` is missing, because it may have a
/// megabyte. Only a claim or an end of the tool itself returns `full_result`.
macro_rules! tool_columns {
    () => {
        "execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error, \
         duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule, signatures, tool_input, \
         events, result"
    };
}

/// Inserts a checkpoint with the given values.
macro_rules! insert_checkpoint {
    ($($values:tt)*) => {
        concat!(
            "INSERT INTO execution_checkpoints \
             (id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, \
              generation, input_tokens, output_tokens, created_at, execution_state) ",
            $($values)*
        )
    };
}

/// Inserts the checkpoint of a reply with the given values.
macro_rules! insert_reply {
    ($($values:tt)*) => {
        concat!(
            "INSERT INTO execution_checkpoints \
             (id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, \
              generation, input_tokens, output_tokens, created_at, execution_state, cached_tokens, cache_write_tokens, \
              reasoning_tokens, cost_nano) ",
            $($values)*
        )
    };
}

/// Sums the usage of the replies in the checkpoints `k`, as [`Spent`](crate::api::Spent) reads it.
macro_rules! spent {
    () => {
        "CAST(COALESCE(SUM(k.input_tokens), 0) AS BIGINT) AS spent_input, \
         CAST(COALESCE(SUM(k.output_tokens), 0) AS BIGINT) AS spent_output, \
         CAST(COALESCE(SUM(k.cached_tokens), 0) AS BIGINT) AS spent_cached, \
         CAST(COALESCE(SUM(k.cache_write_tokens), 0) AS BIGINT) AS spent_cache_write, \
         CAST(COALESCE(SUM(k.reasoning_tokens), 0) AS BIGINT) AS spent_reasoning, \
         CAST(SUM(k.cost_nano) AS BIGINT) AS spent_nano"
    };
}

/// A step of hooks has a checkpoint of generation 0, and does not count as a call.
///
/// Sums the replies of an agent execution, alone and with its sub-agents: [`Totals`](crate::batch::Totals). `of` is the
/// condition for the replies of the whole tree. PostgreSQL gets an array and looks up every element. For a join of
/// unknown size, PostgreSQL would read the whole table.
macro_rules! totals {
    ($execution:literal, $llm_complete:literal, of: $($of:expr),*) => {
        concat!(
            "SELECT COUNT(*) FILTER (WHERE k.agent_execution_id = ",
            $execution,
            " AND k.generation > 0) AS calls, CAST(COALESCE(SUM(k.input_tokens) FILTER (WHERE k.agent_execution_id = ",
            $execution,
            "), 0) AS BIGINT) AS input_tokens, \
             CAST(COALESCE(SUM(k.output_tokens) FILTER (WHERE k.agent_execution_id = ",
            $execution,
            "), 0) AS BIGINT) AS output_tokens, ",
            spent!(),
            " FROM execution_checkpoints k WHERE k.checkpoint_type = ",
            $llm_complete,
            " AND k.agent_execution_id ",
            $($of,)*
        )
    };
}
