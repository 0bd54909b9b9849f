//! Slices of whole results. They are cut in the database: a megabyte is not sent to read a page of it.

use super::Text;

/// The result of one tool execution as bytes: of a string what it holds, of anything else its JSON. SQLite's JSON
/// functions refuse what is nested deeply, so a string is told by its first character there.
macro_rules! result_slice {
    ($($condition:tt)*) => {
        Text {
            sqlite: concat!(
                "SELECT substr(bytes, $4 + 1, $5) AS bytes, length(bytes) AS total_bytes FROM \
                 (SELECT CAST(CASE WHEN substr(whole, 1, 1) = '\"' THEN whole ->> '$' ELSE whole END AS BLOB) AS bytes \
                 FROM (SELECT COALESCE(full_result, result) AS whole FROM tool_execution_records t \
                 WHERE conversation_id = $1 AND execution_id = $2 AND ",
                $($condition)*,
                ") AS results WHERE whole IS NOT NULL) AS texts"
            ),
            postgres: concat!(
                "SELECT substring(bytes FROM CAST($4 AS INTEGER) + 1 FOR CAST($5 AS INTEGER)) AS bytes, \
                 CAST(octet_length(bytes) AS BIGINT) AS total_bytes FROM \
                 (SELECT convert_to(CASE jsonb_typeof(whole) WHEN 'string' THEN whole #>> '{}' \
                 ELSE CAST(whole AS TEXT) END, 'UTF8') AS bytes \
                 FROM (SELECT COALESCE(full_result, result) AS whole FROM tool_execution_records t \
                 WHERE conversation_id = $1 AND execution_id = $2 AND ",
                $($condition)*,
                ") AS results WHERE whole IS NOT NULL) AS texts"
            ),
        }
    };
}

/// conversation, tool execution, tenant, offset, length, owner.
pub const TOOL_RESULT: Text = result_slice!(
    "EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
    visible!("$3", "$6"),
    ")"
);

/// conversation, tool execution, sub-agent or none for the conversation's own thread, offset, length.
pub const TOOL_RESULT_OF_THREAD: Text = result_slice!(
    "(agent_execution_id = $3 OR (CAST($3 AS TEXT) IS NULL AND EXISTS (SELECT 1 FROM agent_executions e \
     WHERE e.id = t.agent_execution_id AND e.parent_execution_id IS NULL)))"
);
