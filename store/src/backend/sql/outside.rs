//! Texts about tool calls that are answered from outside.

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

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` limit, `$5` most bytes. The condition repeats the condition of the
/// index `tool_execution_records_waiting` word by word, because PostgreSQL uses a partial index only for identical
/// words.
pub(crate) const WAITING_TOOLS: &str = page!(
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

/// The parameters of [`ended`](super::tools::ended) come first. The next parameters: `$8` conversation, `$9` tool
/// execution, `$10` tenant, `$11` owner, `$12` list of approvals that let a tool run, `$13` kind, `$14` status, `$15`
/// claimant or NULL.
pub(crate) const STORE_RESULT: SqlText = SqlText {
    sqlite: store_result!("IN (SELECT value FROM json_each($12))"),
    postgres: store_result!("= ANY($12)"),
};

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution, `$5` claimant, `$6` end of the claim, `$7` now.
/// Returns the number of clients that have begun the call. Returns no row when another client has the claim, or when
/// the call no longer waits.
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

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution. Selects the end of a waiting call's claim.
pub(crate) const CLIENT_TOOL_CLAIM: &str = concat!(
    "SELECT expires_at FROM client_tool_claims WHERE execution_id = $4 AND conversation_id = $1 \
     AND EXISTS (SELECT 1 FROM ",
    from_outside_tools!("execution_id = $4 AND kind = 'client' AND status = 'pending'"),
    ")"
);

/// `$1` conversation, `$2` tool execution, `$3` approval, `$4` input hash, `$5` expires at, `$6` input.
pub(crate) const APPROVE_TOOL: &str = "UPDATE tool_execution_records SET approval = $3, input_hash = $4, \
     expires_at = $5, tool_input = $6 WHERE conversation_id = $1 AND execution_id = $2";

/// `$1` conversation, `$2` tool, `$3` now, `$4` definition.
pub(crate) const INSERT_GRANT: &str = "INSERT INTO tool_grants (conversation_id, tool_name, granted_at, definition_hash) \
     VALUES ($1, $2, $3, $4) ON CONFLICT (conversation_id, tool_name) DO UPDATE SET granted_at = excluded.granted_at, \
     definition_hash = excluded.definition_hash";

/// `$1` conversation, `$2` list of tools.
pub(crate) const GRANTED_TOOLS: SqlText = among!(
    "SELECT tool_name, definition_hash FROM tool_grants WHERE conversation_id = $1 AND tool_name",
    "$2",
    ""
);

macro_rules! used_definitions {
    ($names:literal, $is_runnable:literal) => {
        concat!(
            "SELECT tool_name, definition_hash FROM (SELECT tool_name, definition_hash, ROW_NUMBER() OVER \
             (PARTITION BY tool_name ORDER BY created_at DESC, call_index DESC) AS rank FROM tool_execution_records \
             WHERE conversation_id = $1 AND definition_hash <> '' AND tool_name ",
            $names,
            " AND approval ",
            $is_runnable,
            ") AS used WHERE rank = 1"
        )
    };
}

/// `$1` conversation, `$2` list of tools, `$3` list of approvals that let a tool run. Selects, for every tool, the
/// definition of the last call that was allowed to run.
pub(crate) const USED_DEFINITIONS: SqlText = SqlText {
    sqlite: used_definitions!(
        "IN (SELECT value FROM json_each($2))",
        "IN (SELECT value FROM json_each($3))"
    ),
    postgres: used_definitions!("= ANY($2)", "= ANY($3)"),
};

/// `$1` conversation, `$2` tool execution, `$3` person who answers. Selects the rule of a call, and whether the person
/// may have asked for the call: the person has sent a message of the call's turn, or the sender of a message is
/// unknown.
pub(crate) const CALL_RULE: &str = "SELECT t.approval_rule, EXISTS (SELECT 1 FROM messages m \
     JOIN messages f ON f.conversation_id = m.conversation_id AND f.id = t.message_id \
     WHERE m.conversation_id = t.conversation_id AND m.thread = '' AND m.role = 'user' \
     AND m.sequence_number >= f.sequence_number AND (m.sent_by IS NULL OR m.sent_by = $3)) AS may_have_asked \
     FROM tool_execution_records t WHERE t.conversation_id = $1 AND t.execution_id = $2";

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` tool execution, `$5` answer, `$6` person who answered, `$7` now,
/// `$8` the most answers to a call. Returns the answer, unless the call does not exist or has too many answers.
pub(crate) const NOTE_ANSWER: &str = concat!(
    "INSERT INTO approval_answers (conversation_id, execution_id, answer_id, answered_by, answered_at) \
     SELECT conversation_id, execution_id, $5, $6, $7 FROM ",
    from_outside_tools!(
        "execution_id = $4 AND ((SELECT COUNT(*) FROM approval_answers a WHERE a.conversation_id = $1 \
         AND a.execution_id = $4) < $8 OR EXISTS (SELECT 1 FROM approval_answers a WHERE a.conversation_id = $1 \
         AND a.execution_id = $4 AND a.answer_id = $5))"
    ),
    " ON CONFLICT (conversation_id, execution_id, answer_id) DO UPDATE SET answered_by = approval_answers.answered_by \
     RETURNING answer_id"
);

/// `$1` conversation, `$2` tool execution, `$3` answer.
pub(crate) const ANSWERED_BY: &str = "SELECT answered_by FROM approval_answers \
     WHERE conversation_id = $1 AND execution_id = $2 AND answer_id = $3";

/// `$1` agent execution, `$2` step. Selects the state of the step's calls that are answered from outside.
pub(crate) const ASKED_TOOLS: &str = "SELECT execution_id, kind, status, approval, expires_at \
     FROM tool_execution_records WHERE agent_execution_id = $1 AND step = $2 ORDER BY call_index";
