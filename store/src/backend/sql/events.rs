//! Texts about the event log.

use super::SqlText;

/// Makes the text of [`EVENTS`]. `object_of` aggregates names and values to a JSON object.
macro_rules! events {
    ($object_of:literal) => {
        concat!(
            "SELECT id, message_id, event_type, event_data, sequence_number, created_at, sequence_number AS page_rank, \
             CAST(data_bytes AS INTEGER) AS bytes, CASE sequence_number WHEN $4 THEN (SELECT ",
            $object_of,
            "(e.id, e.generation) FROM agent_executions e \
             WHERE e.conversation_id = $1 AND e.status = 'running') END AS generations \
             FROM agent_execution_events WHERE conversation_id = $1 AND sequence_number >= $4 \
             AND sequence_number <= (SELECT MAX(sequence_number) FROM (",
            page!(
                columns: "sequence_number",
                bytes: "data_bytes",
                from: concat!(
                    "agent_execution_events WHERE conversation_id = $1 AND sequence_number >= $4 AND ",
                    of_visible_log!("$6")
                ),
                order: "sequence_number",
                limit: "$5",
                most_bytes: "$7"
            ),
            ") AS page) ORDER BY sequence_number"
        )
    };
}

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` first sequence number, `$5` limit, `$6` log, `$7` most bytes. The
/// limit is computed from the numbers and lengths of the rows, because including the texts would take twice the time.
/// The first row also has the newest generation of every running agent execution, from the same snapshot and round
/// trip.
pub(crate) const EVENTS: SqlText = SqlText {
    sqlite: events!("json_group_object"),
    postgres: events!("json_object_agg"),
};

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` exclusive upper sequence number, `$5` limit, `$6` log, `$7` most
/// bytes. Like [`EVENTS`], but with the last event first and without generations.
pub(crate) const EVENTS_BEFORE: &str = concat!(
    "SELECT id, message_id, event_type, event_data, sequence_number, created_at, -sequence_number AS page_rank, \
     CAST(data_bytes AS INTEGER) AS bytes, NULL AS generations \
     FROM agent_execution_events WHERE conversation_id = $1 AND sequence_number < $4 \
     AND sequence_number >= (SELECT MIN(sequence_number) FROM (",
    page!(
        columns: "sequence_number",
        bytes: "data_bytes",
        from: concat!(
            "agent_execution_events WHERE conversation_id = $1 AND sequence_number < $4 AND ",
            of_visible_log!("$6")
        ),
        order: "sequence_number DESC",
        limit: "$5",
        most_bytes: "$7"
    ),
    ") AS page) ORDER BY sequence_number DESC"
);

/// Makes the text of [`LINKS`]. `$agents` and `$tools` are true for a row with an id from the list.
macro_rules! links {
    ($agents:literal, $tools:literal) => {
        concat!(
            "SELECT id, parent_tool_call_id AS call_id, NULL AS tool_input FROM agent_executions \
             WHERE conversation_id = $1 AND parent_tool_call_id IS NOT NULL AND id ",
            $agents,
            " AND ",
            of_visible_log!("$4"),
            " UNION ALL SELECT execution_id, NULL, tool_input FROM tool_execution_records \
             WHERE conversation_id = $1 AND approval = 'approved' AND execution_id ",
            $tools,
            " AND ",
            of_visible_log!("$4")
        )
    };
}

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` log, `$5` list of agent executions, `$6` list of tool executions.
pub(crate) const LINKS: SqlText = SqlText {
    sqlite: links!(
        "IN (SELECT value FROM json_each($5))",
        "IN (SELECT value FROM json_each($6))"
    ),
    postgres: links!("= ANY($5)", "= ANY($6)"),
};

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` log, `$5` sequence number, `$6` time. Selects the last event before
/// `$5` that was saved by the time `$6`.
pub(crate) const LAST_COMMON: &str = concat!(
    "SELECT sequence_number FROM agent_execution_events WHERE conversation_id = $1 AND sequence_number < $5 \
     AND created_at <= $6 AND ",
    of_visible_log!("$4"),
    " ORDER BY sequence_number DESC LIMIT 1"
);

/// `$1` conversation, `$2` tenant, `$3` owner.
pub(crate) const CONVERSATION_STATUS: &str = concat!(
    "SELECT log_id, c.last_sequence, ",
    running_turn!("message_id", "c.id"),
    " AS running_message_id, \
     (SELECT m.id FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued' \
      ORDER BY m.created_at, m.id LIMIT 1) AS queued_message_id \
     FROM conversations c WHERE c.id = $1 AND ",
    visible!()
);

/// `$1` list of conversations.
pub(crate) const LAST_SEQUENCES: SqlText = among!(
    concat!("SELECT id, log_id, last_sequence FROM conversations WHERE id"),
    "$1",
    ""
);
