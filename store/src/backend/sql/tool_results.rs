//! Texts that read slices of full results. The database cuts the slice, so that a page does not transfer a megabyte.

use super::SqlText;

/// Selects a slice of a tool execution's result, as bytes: the content of a string, or the JSON of any other value.
/// SQLite's JSON functions refuse deeply nested values, so in SQLite the first character identifies a string.
macro_rules! result_slice {
    ($execution:literal, $offset:literal, $length:literal, $($condition:tt)*) => {
        SqlText {
            sqlite: concat!(
                "SELECT substr(bytes, ", $offset, " + 1, ", $length, ") AS bytes, length(bytes) AS total_bytes FROM \
                 (SELECT CAST(CASE WHEN substr(whole, 1, 1) = '\"' THEN whole ->> '$' ELSE whole END AS BLOB) AS bytes \
                 FROM ", whole_result!($execution, $($condition)*), ") AS texts"
            ),
            postgres: concat!(
                "SELECT substring(bytes FROM CAST(", $offset, " AS INTEGER) + 1 FOR CAST(", $length, " AS INTEGER)) \
                 AS bytes, CAST(octet_length(bytes) AS BIGINT) AS total_bytes FROM \
                 (SELECT convert_to(CASE jsonb_typeof(whole) WHEN 'string' THEN whole #>> '{}' \
                 ELSE CAST(whole AS TEXT) END, 'UTF8') AS bytes \
                 FROM ", whole_result!($execution, $($condition)*), ") AS texts"
            ),
        }
    };
}

macro_rules! whole_result {
    ($execution:literal, $($condition:tt)*) => {
        concat!(
            "(SELECT COALESCE(full_result, result) AS whole FROM tool_execution_records t \
             WHERE conversation_id = $1 AND execution_id = ", $execution, " AND ",
            $($condition)*,
            ") AS results WHERE whole IS NOT NULL"
        )
    };
}

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution, `$5` offset, `$6` length.
pub(crate) const TOOL_RESULT: SqlText = result_slice!("$4", "$5", "$6", of_visible_conversation!());

/// `$1` conversation, `$2` the sub-agent of the thread, or none for the conversation's own thread, `$3` tool execution,
/// `$4` offset, `$5` length.
pub(crate) const TOOL_RESULT_OF_THREAD: SqlText = result_slice!(
    "$3",
    "$4",
    "$5",
    "(agent_execution_id = $2 OR (CAST($2 AS TEXT) IS NULL AND EXISTS (SELECT 1 FROM agent_executions e \
     WHERE e.id = t.agent_execution_id AND e.parent_execution_id IS NULL)))"
);
