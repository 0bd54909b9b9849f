//! Tool calls that someone outside answers.

use super::Text;

macro_rules! outside_tools {
    ($($condition:tt)*) => {
        concat!(
            "SELECT message_id, agent_execution_id, created_at, expires_at, ",
            tool_columns!(),
            " FROM tool_execution_records WHERE conversation_id = $1 \
             AND EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
            visible!("$2", "$3"),
            ") AND ",
            $($condition)*
        )
    };
}

/// conversation, tenant, owner, limit.
pub const WAITING_TOOLS: &str = outside_tools!(
    "status = 'pending' AND (approval = 'pending' OR kind = 'client') ORDER BY created_at, call_index LIMIT $4"
);

/// conversation, tenant, owner, tool execution.
pub(crate) const OUTSIDE_TOOL: &str = outside_tools!("execution_id = $4");

/// conversation, tool execution, tenant, owner, status, is error, duration, now, result, full result.
pub(crate) const STORE_CLIENT_RESULT: &str = concat!(
    "UPDATE tool_execution_records SET status = $5, is_error = $6, duration_ms = $7, finished_at = $8, result = $9, \
     full_result = $10 WHERE conversation_id = $1 AND execution_id = $2 \
     AND EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
    visible!("$3", "$4"),
    ") AND kind = 'client' AND status = 'pending' AND approval IN ('', 'approved')"
);

/// conversation, tool execution, approval, input hash, expires at, input.
pub(crate) const APPROVE_TOOL: &str = "UPDATE tool_execution_records SET approval = $3, input_hash = $4, \
     expires_at = $5, tool_input = $6 WHERE conversation_id = $1 AND execution_id = $2";

/// conversation, id, calls.
pub(crate) const SET_TOOL_CALLS: &str =
    "UPDATE messages SET tool_calls = $3 WHERE conversation_id = $1 AND id = $2";

/// conversation, tool, now.
pub(crate) const INSERT_GRANT: &str = "INSERT INTO tool_grants (conversation_id, tool_name, granted_at) \
     VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// conversation, list of tools.
pub(crate) const GRANTED_TOOLS: Text = among!(
    "SELECT tool_name FROM tool_grants WHERE conversation_id = $1 AND tool_name",
    "$2",
    ""
);

/// execution, step. What a run that saves this step's thought again need not wait for.
pub(crate) const ANSWERED_TOOLS: &str = "SELECT execution_id, approval NOT IN ('', 'pending') AS is_answered, \
     kind = 'client' AND status NOT IN ('pending', 'running') AS has_result, \
     CASE WHEN status = 'pending' THEN expires_at END AS waits_until \
     FROM tool_execution_records WHERE agent_execution_id = $1 AND step = $2 \
     AND (approval <> '' OR kind = 'client') ORDER BY call_index";
