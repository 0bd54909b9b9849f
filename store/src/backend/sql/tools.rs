//! Texts about records of tool executions: claims, ends, and the reads and writes of a batch.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, types::Json as Column};

use super::{
    super::write::values::{Refusal, Values},
    Arguments, Db, Select, SqlText,
};
use crate::api::{ToolEnd, ToolKey};

/// `$1` conversation, `$2` tool execution, `$3` agent execution.
pub(crate) const TOOL: &str = concat!(
    "SELECT ",
    tool_columns!(),
    ", full_result FROM tool_execution_records \
     WHERE conversation_id = $1 AND execution_id = $2 AND agent_execution_id = $3"
);

macro_rules! start_tool {
    ($is_runnable:literal, $is_repeatable:literal) => {
        concat!(
            "UPDATE tool_execution_records SET status = $9, claimant = $5, \
             attempt = attempt + CASE WHEN claimant = $5 THEN 0 ELSE 1 END, \
             started_at = COALESCE(started_at, $4) WHERE conversation_id = $1 AND execution_id = $2 \
             AND agent_execution_id = $3 AND ",
            run_is_newest!("$1", "$10"),
            " AND approval ",
            $is_runnable,
            " AND (status = $8 OR (status = $9 AND (effect ",
            $is_repeatable,
            " OR claimant = $5))) RETURNING ",
            tool_columns!()
        )
    };
}

/// `$1` conversation, `$2` tool execution, `$3` agent execution, `$4` now, `$5` claimant, `$6` list of approvals that
/// let a tool run, `$7` list of effects with which a tool may run again, `$8` status pending, `$9` status running,
/// `$10` epoch of the run. Returns the record and the person for whom the tool runs, if the tool may run. A claimant
/// that asks again lost the first answer and ran no tool, so the attempt is unchanged.
///
/// PostgreSQL writes the checkpoint `tool_start` in the same statement: `$11` its id, `$12` message, `$13` step, `$14`
/// type. The writer of the checkpoint holds the record's lock, so the clause may name one of the table's two keys. The
/// state is a `ToolStartState`.
pub(crate) const START_TOOL: SqlText = SqlText {
    sqlite: concat!(
        start_tool!(
            "IN (SELECT value FROM json_each($6))",
            "IN (SELECT value FROM json_each($7))"
        ),
        ", (SELECT depth FROM agent_executions WHERE id = $3) AS depth, \
         (SELECT agent FROM agent_executions WHERE id = $3) AS agent, \
         (SELECT tenant_id FROM conversations WHERE id = $1) AS tenant_id, \
         (SELECT NULLIF(owner_id, '') FROM conversations WHERE id = $1) AS owner_id"
    ),
    postgres: concat!(
        "WITH started AS (",
        start_tool!("= ANY($6)", "= ANY($7)"),
        "), checkpoint AS (",
        insert_checkpoint!(
            "SELECT $11, $1, $12, $3, $14, execution_id, $13, attempt, 0, 0, $4, \
             jsonb_build_object('execution_id', execution_id, 'tool_name', tool_name, 'tool_input', tool_input, \
             'attempt', attempt) FROM started ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, \
             created_at = excluded.created_at, execution_state = excluded.execution_state"
        ),
        ") SELECT started.*, e.depth, e.agent, c.tenant_id, NULLIF(c.owner_id, '') AS owner_id FROM started \
         JOIN agent_executions e ON e.id = $3 JOIN conversations c ON c.id = $1"
    ),
};

/// `$1` conversation, `$2` tool execution, `$3` agent execution, `$4` claimant, `$5` status pending, `$6` status running.
pub(crate) const RELEASE_TOOL: &str = "UPDATE tool_execution_records SET status = $5, claimant = '', \
     attempt = attempt - 1 WHERE conversation_id = $1 AND execution_id = $2 AND agent_execution_id = $3 \
     AND status = $6 AND claimant = $4";

macro_rules! finish_tool {
    ($is_open:literal) => {
        end_tool!(
            "conversation_id = $8 AND execution_id = $9 AND agent_execution_id = $10 AND status ",
            $is_open,
            " RETURNING ",
            tool_columns!(),
            ", full_result"
        )
    };
}

/// Ends an unfinished tool execution, and returns its record. The first end wins. The parameters of [`ended`] come
/// first. The next parameters: `$8` conversation, `$9` tool execution, `$10` agent execution, `$11` list of the open
/// statuses.
pub(crate) const FINISH_TOOL: SqlText = SqlText {
    sqlite: finish_tool!("IN (SELECT value FROM json_each($11))"),
    postgres: finish_tool!("= ANY($11)"),
};

/// Ends the call that started a sub-agent. The parameters of [`bind_end`] come first. The next parameters: `$8`
/// conversation, `$9` tool execution.
pub(crate) const END_DELEGATE_CALL: &str = end_tool!("conversation_id = $8 AND execution_id = $9");

/// Binds the first parameters of a text that ends a tool execution: `$1` status, `$2` is error, `$3` duration, `$4` now,
/// `$5` events, `$6` result, `$7` full result.
pub(crate) fn bind_end<'v, 'a>(
    values: &'v mut Values<'a>,
    end: &ToolEnd,
    now: DateTime<Utc>,
) -> &'v mut Values<'a> {
    values
        .bind(end.status.as_str())
        .bind(end.is_error)
        .bind(i64::from(end.duration_ms))
        .bind(now)
        .bind(Column(&end.events))
        .bind(Column(&end.result))
        .bind(end.full_result.as_ref().map(Column))
}

/// Returns a text that ends a tool execution, with the parameters of [`bind_end`].
pub(crate) fn ended<'q, T>(
    text: &'static str,
    end: &ToolEnd,
    now: DateTime<Utc>,
) -> sqlx::Result<Select<'q, T>>
where
    T: for<'r> FromRow<'r, <Db as sqlx::Database>::Row>,
{
    let (mut arguments, mut refusal) = (Arguments::default(), Refusal::default());
    bind_end(&mut Values::of(&mut arguments, &mut refusal), end, now);
    let arguments = refusal.or(arguments).map_err(sqlx::Error::Encode)?;
    Ok(sqlx::query_as_with(text, arguments))
}

/// Returns a text about a tool execution of one agent execution, with its first parameters: `$1` conversation, `$2`
/// tool execution, `$3` agent execution.
pub(crate) fn of_tool<'q, T>(text: &'static str, key: &'q ToolKey) -> Select<'q, T>
where
    T: for<'r> FromRow<'r, <Db as sqlx::Database>::Row>,
{
    sqlx::query_as(text)
        .bind(&key.conversation_id)
        .bind(&key.execution_id)
        .bind(&key.agent_execution_id)
}

/// `$1` conversation, `$2` agent execution, `$3` tool execution. The record is locked, because claims and ends of tools
/// do not lock the conversation. A decision from the record must still be true at the write.
pub(crate) const TOOL_TO_OBSERVE: SqlText = locking!(
    "SELECT ",
    tool_columns!(),
    " FROM tool_execution_records WHERE conversation_id = $1 AND agent_execution_id = $2 AND execution_id = $3"
);

/// `$1` agent execution. The records are locked, as in [`TOOL_TO_OBSERVE`].
pub(crate) const OPEN_TOOLS: SqlText = locking!(
    "SELECT ",
    tool_columns!(),
    " FROM tool_execution_records WHERE agent_execution_id = $1 AND observed_sequence IS NULL \
     ORDER BY step, call_index"
);

/// `$1` conversation, `$2` agent execution of a sub-agent. Selects the call that started the sub-agent, locked as in
/// [`TOOL_TO_OBSERVE`].
pub(crate) const DELEGATE_CALL: SqlText = locking!(
    "SELECT started_at, ",
    tool_columns!(),
    " FROM tool_execution_records WHERE conversation_id = $1 \
     AND call_id = (SELECT parent_tool_call_id FROM agent_executions WHERE id = $2)"
);

/// `$1` conversation, `$2` list of tool executions. Selects the tool executions with a record.
pub(crate) const RECORDED: SqlText = among!(
    "SELECT execution_id FROM tool_execution_records WHERE conversation_id = $1 AND execution_id",
    "$2",
    ""
);

/// `$1` conversation, `$2` step of the hooks after turns, `$3` start of the period, `$4` agent execution to leave out,
/// `$5` list of the open statuses. Counts the unfinished hooks.
pub(crate) const OPEN_HOOKS: SqlText = among!(
    "SELECT COUNT(*) FROM tool_execution_records WHERE conversation_id = $1 AND step = $2 AND created_at > $3 \
     AND agent_execution_id <> $4 AND status",
    "$5",
    ""
);

/// `$1` conversation, `$2` list of call ids.
pub(crate) const USED_CALL_IDS: SqlText = among!(
    "SELECT call_id FROM tool_execution_records WHERE conversation_id = $1 AND call_id",
    "$2",
    ""
);

/// `$1` conversation, `$2` tool execution, `$3` sequence number of the observe.
pub(crate) const OBSERVE_TOOL: &str = "UPDATE tool_execution_records SET observed_sequence = $3 \
     WHERE conversation_id = $1 AND execution_id = $2";

/// Ends an insert of records. The statement also ends and observes existing records. An existing record keeps its
/// events and its full result.
pub(crate) const OR_OBSERVE_TOOLS: &str = " ON CONFLICT (conversation_id, execution_id) DO UPDATE SET \
     status = excluded.status, is_error = excluded.is_error, duration_ms = excluded.duration_ms, \
     observed_sequence = excluded.observed_sequence, result = excluded.result, approval = excluded.approval, \
     finished_at = COALESCE(tool_execution_records.finished_at, excluded.finished_at)";

/// Ends an insert of records. An existing record stays unchanged.
pub(crate) const UNLESS_RECORDED: &str = " ON CONFLICT (conversation_id, execution_id) DO NOTHING";
