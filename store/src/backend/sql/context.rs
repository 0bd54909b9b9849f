//! Texts about the context of a model: its start, and its messages.

use super::SqlText;

/// `$1` conversation, `$2` thread, `$3` last event before the cut, `$4` agent execution, `$5` step, `$6` summary, `$7`
/// list of kept messages, `$8` now.
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

/// True when the messages that the caller has read are still the beginning of the context: cut and last message are
/// unchanged. Numbers alone are no proof, because a database restored to an earlier point assigns the numbers again.
macro_rules! is_read {
    () => {
        concat!(
            "(COALESCE(",
            newest_cut!("through_sequence"),
            ", 0) = $5 AND EXISTS (SELECT 1 FROM messages WHERE conversation_id = $1 AND thread = $3 \
             AND sequence_number = $6 AND created_at = $7))"
        )
    };
}

/// The columns of a message, and its rank: the summary first, then kept messages, then later messages.
macro_rules! message {
    ($rank:literal, $is_kept:literal) => {
        concat!(
            $rank,
            " AS rank, role, content, tool_calls, tool_results, attachments, sequence_number, id, agent_execution_id, \
             created_at, ",
            $is_kept,
            " AS is_kept"
        )
    };
}

/// Selects the summary, the kept messages from before the cut, and the messages after the cut; or only the messages
/// after the caller's last read.
macro_rules! context {
    (no_calls: $none:literal, kept: $kept:expr) => {
        page!(
            columns: "role, content, tool_calls, tool_results, attachments, sequence_number, id, agent_execution_id, created_at, \
                      is_kept, rank",
            bytes: "OCTET_LENGTH(content) + OCTET_LENGTH(CAST(tool_calls AS TEXT)) \
                    + OCTET_LENGTH(CAST(tool_results AS TEXT))",
            from: concat!(
                "(SELECT 0 AS rank, 'summary' AS role, summary AS content, ",
                $none,
                " AS tool_calls, ",
                $none,
                " AS tool_results, ",
                $none,
                " AS attachments, through_sequence AS sequence_number, '' AS id, '' AS agent_execution_id, created_at, \
                 FALSE AS is_kept FROM ",
                newest_cut!("summary, through_sequence, created_at"),
                " AS cut WHERE NOT ",
                is_read!(),
                " UNION ALL SELECT ",
                message!("1", "TRUE"),
                " FROM ",
                $kept,
                " AND NOT ",
                is_read!(),
                " UNION ALL SELECT * FROM (SELECT ",
                message!("2", "FALSE"),
                " FROM messages WHERE conversation_id = $1 AND thread = $3 AND sequence_number > CASE WHEN ",
                is_read!(),
                " THEN $6 ELSE COALESCE(",
                newest_cut!("through_sequence"),
                ", 0) END ORDER BY sequence_number LIMIT $2) AS after) AS parts"
            ),
            order: "rank, sequence_number",
            limit: "$2",
            most_bytes: "$4"
        )
    };
}

/// `$1` conversation, `$2` limit, `$3` thread, `$4` most bytes. The caller's last read: `$5` the last event before its
/// cut (0 without a cut, -1 without an earlier read), `$6` its last event, `$7` the creation time of `$6`. The oldest
/// messages come first. The statement reads only new messages, and no message from before a cut except the kept ones.
pub(crate) const CONTEXT: SqlText = SqlText {
    sqlite: context!(
        no_calls: "'[]'",
        kept: concat!(
            "messages WHERE conversation_id = $1 AND id IN (SELECT value FROM json_each(",
            newest_cut!("kept_message_ids"),
            "))"
        )
    ),
    // A look-up per message, regardless of PostgreSQL's estimate of the conversation's messages.
    postgres: context!(
        no_calls: "CAST('[]' AS JSONB)",
        kept: concat!(
            "(SELECT unnest(kept_message_ids) AS kept_id FROM ",
            newest_cut!("kept_message_ids"),
            " AS cut) AS kept CROSS JOIN LATERAL (SELECT * FROM messages WHERE conversation_id = $1 AND id = kept_id \
             LIMIT 1) AS found_kept WHERE TRUE"
        )
    ),
};
