//! Texts about the context of a model: where it begins, and which messages it has.

use super::SqlText;

/// `$1` conversation, `$2` thread, `$3` last event before the cut, `$4` agent execution, `$5` step, `$6` summary, `$7`
/// list of the messages that are kept, `$8` now.
pub(crate) const CUT_CONTEXT: &str = "INSERT INTO context_cuts (conversation_id, thread, through_sequence, \
     agent_execution_id, step, summary, kept_message_ids, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// The newest cut of the thread `$3`.
macro_rules! newest_cut {
    ($columns:literal) => {
        concat!(
            "(SELECT ",
            $columns,
            " FROM context_cuts WHERE conversation_id = $1 AND thread = $3 ORDER BY through_sequence DESC LIMIT 1)"
        )
    };
}

/// The summary, the messages before the cut that are kept, and those after it.
macro_rules! context {
    (no_calls: $none:literal, kept: $kept:expr) => {
        measured!(
            columns: "role, content, tool_calls, tool_results, sequence_number, id, agent_execution_id, is_kept",
            bytes: "OCTET_LENGTH(content) + OCTET_LENGTH(CAST(tool_calls AS TEXT)) \
                    + OCTET_LENGTH(CAST(tool_results AS TEXT))",
            from: concat!(
                "(SELECT 'summary' AS role, summary AS content, ",
                $none,
                " AS tool_calls, ",
                $none,
                " AS tool_results, CAST(0 AS BIGINT) AS sequence_number, '' AS id, '' AS agent_execution_id, \
                 FALSE AS is_kept FROM ",
                newest_cut!("summary"),
                " AS cut UNION ALL SELECT role, content, tool_calls, tool_results, sequence_number, id, \
                 agent_execution_id, TRUE AS is_kept FROM ",
                $kept,
                " UNION ALL SELECT * FROM (SELECT role, content, tool_calls, tool_results, sequence_number, id, \
                 agent_execution_id, FALSE AS is_kept FROM messages WHERE conversation_id = $1 AND thread = $3 AND sequence_number > \
                 COALESCE(",
                newest_cut!("through_sequence"),
                ", 0) ORDER BY sequence_number LIMIT $2) AS after) AS parts"
            ),
            order: "sequence_number",
            limit: "$2",
            most_bytes: "$4"
        )
    };
}

/// `$1` conversation, `$2` limit, `$3` thread, `$4` most bytes. The oldest come first. It reads what is sent, and nothing of
/// what was before.
pub(crate) const CONTEXT: SqlText = SqlText {
    sqlite: context!(
        no_calls: "'[]'",
        kept: concat!(
            "messages WHERE conversation_id = $1 AND id IN (SELECT value FROM json_each(",
            newest_cut!("kept_message_ids"),
            "))"
        )
    ),
    // One look-up for each, however many messages PostgreSQL believes that a conversation has.
    postgres: context!(
        no_calls: "CAST('[]' AS JSONB)",
        kept: concat!(
            "(SELECT unnest(kept_message_ids) AS kept_id FROM ",
            newest_cut!("kept_message_ids"),
            " AS cut) AS kept CROSS JOIN LATERAL (SELECT * FROM messages WHERE conversation_id = $1 AND id = kept_id \
             LIMIT 1) AS found_kept"
        )
    ),
};
