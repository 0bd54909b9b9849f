//! Texts about tool calls that someone outside answers.

use super::SqlText;

macro_rules! outside_columns {
    () => {
        concat!(
            "message_id, agent_execution_id, created_at, expires_at, ",
            tool_columns!()
        )
    };
}

macro_rules! from_outside_tools {
    ($condition:literal) => {
        concat!(
            "tool_execution_records WHERE conversation_id = $1 AND ",
            of_visible_conversation!(),
            " AND ",
            $condition
        )
    };
}

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` limit, `$5` most bytes. The condition repeats that of the index
/// `tool_execution_records_waiting` word by word, because PostgreSQL uses a partial index only for such a text.
pub(crate) const WAITING_TOOLS: &str = measured!(
    columns: outside_columns!(),
    bytes: "OCTET_LENGTH(CAST(tool_input AS TEXT))",
    from: from_outside_tools!("status = 'pending' AND (approval = 'pending' OR kind = 'client')"),
    order: "created_at, call_index",
    limit: "$4",
    most_bytes: "$5"
);

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution.
pub(crate) const OUTSIDE_TOOL: &str = concat!(
    "SELECT ",
    outside_columns!(),
    " FROM ",
    from_outside_tools!("execution_id = $4")
);

macro_rules! store_result {
    ($is_runnable:literal) => {
        end_tool!(
            "conversation_id = $8 AND execution_id = $9 AND EXISTS (SELECT 1 FROM conversations \
             WHERE conversations.id = $8 AND tenant_id = $10 AND (CAST($11 AS TEXT) IS NULL OR owner_id = $11)) \
             AND kind = $13 AND status = $14 AND (CAST($15 AS TEXT) IS NULL OR claimant = $15) AND approval ",
            $is_runnable,
            " RETURNING execution_id"
        )
    };
}

/// The parameters of [`ended`](super::tools::ended) come first. Then: `$8` conversation, `$9` tool execution, `$10`
/// tenant, `$11` owner, `$12` list of approvals that let a tool run, `$13` kind, `$14` status, `$15` claimant or NULL.
pub(crate) const STORE_RESULT: SqlText = SqlText {
    sqlite: store_result!("IN (SELECT value FROM json_each($12))"),
    postgres: store_result!("= ANY($12)"),
};

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution, `$5` claimant, `$6` until when, `$7` now. Gives the number
/// of clients that have begun the call; nothing when another one has the claim, or the call waits no more.
pub(crate) const CLAIM_CLIENT_TOOL: &str = concat!(
    "INSERT INTO client_tool_claims (conversation_id, execution_id, claimant, claims, expires_at) \
     SELECT conversation_id, execution_id, $5, 1, $6 FROM ",
    from_outside_tools!("execution_id = $4 AND kind = 'client' AND status = 'pending'"),
    " ON CONFLICT (conversation_id, execution_id) DO UPDATE SET claimant = excluded.claimant, \
     expires_at = excluded.expires_at, claims = client_tool_claims.claims \
     + CASE WHEN client_tool_claims.claimant = excluded.claimant THEN 0 ELSE 1 END \
     WHERE client_tool_claims.claimant = excluded.claimant OR client_tool_claims.expires_at <= $7 \
     RETURNING CAST(claims AS BIGINT)"
);

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution. Selects until when a call that waits is claimed.
pub(crate) const CLIENT_TOOL_CLAIM: &str = concat!(
    "SELECT expires_at FROM client_tool_claims WHERE execution_id = $4 AND conversation_id = $1 \
     AND EXISTS (SELECT 1 FROM ",
    from_outside_tools!("execution_id = $4 AND kind = 'client' AND status = 'pending'"),
    ")"
);

/// `$1` conversation, `$2` tool execution, `$3` approval, `$4` input hash, `$5` expires at, `$6` input.
pub(crate) const APPROVE_TOOL: &str = "UPDATE tool_execution_records SET approval = $3, input_hash = $4, \
     expires_at = $5, tool_input = $6 WHERE conversation_id = $1 AND execution_id = $2";

/// `$1` conversation, `$2` tool, `$3` now.
pub(crate) const INSERT_GRANT: &str = "INSERT INTO tool_grants (conversation_id, tool_name, granted_at) \
     VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// `$1` conversation, `$2` list of tools.
pub(crate) const GRANTED_TOOLS: SqlText = among!(
    "SELECT tool_name FROM tool_grants WHERE conversation_id = $1 AND tool_name",
    "$2",
    ""
);

/// `$1` agent execution, `$2` step. Selects the state of the step's calls that someone outside answers.
pub(crate) const ASKED_TOOLS: &str = "SELECT execution_id, kind, status, approval, expires_at \
     FROM tool_execution_records WHERE agent_execution_id = $1 AND step = $2 ORDER BY call_index";
