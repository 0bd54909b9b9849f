//! Texts that remove whole conversations, and that keep tombstones of deleted conversations.

use super::SqlText;

/// The condition: the conversation `c` is unchanged since `$1`, has no running turn and no waiting message.
macro_rules! expired {
    () => {
        "c.updated_at < $1 \
         AND NOT EXISTS (SELECT 1 FROM agent_executions e WHERE e.conversation_id = c.id AND e.status = 'running') \
         AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued')"
    };
}

macro_rules! expired_ids {
    () => {
        concat!(
            "SELECT c.id FROM conversations c WHERE ",
            expired!(),
            " AND c.id > $2 ORDER BY c.id LIMIT $3"
        )
    };
}

/// `$1` before.
pub(crate) const COUNT_EXPIRED: &str = concat!(
    "SELECT COUNT(*) AS conversations, CAST(COALESCE(SUM(c.last_sequence), 0) AS BIGINT) AS events \
     FROM conversations c WHERE ",
    expired!()
);

/// `$1` before, `$2` after this id, `$3` limit.
pub(crate) const EXPIRED: &str = expired_ids!();

/// `$1` before, `$2` after this id, `$3` limit. Skips a conversation locked by a writer.
pub(crate) const LOCK_EXPIRED: SqlText = SqlText {
    sqlite: expired_ids!(),
    postgres: concat!(expired_ids!(), " FOR UPDATE OF c SKIP LOCKED"),
};

/// `$1` before, `$2` list of conversations. The condition is checked again under the lock, because PostgreSQL looked
/// for running turns and waiting messages before taking the lock.
pub(crate) const STILL_EXPIRED: SqlText = among!(
    concat!(
        "SELECT c.id, c.last_sequence FROM conversations c WHERE ",
        expired!(),
        " AND c.id"
    ),
    "$2",
    " ORDER BY c.id"
);

/// `$1` list of conversations. Tool records go first, because a claim of a tool holds the tool's record while waiting
/// for its agent execution.
pub(crate) const REMOVE_TOOLS: SqlText = among!(
    "DELETE FROM tool_execution_records WHERE conversation_id",
    "$1",
    ""
);

/// `$1` list of conversations. After the lock, a worker that was thought dead adds no more checkpoints, and later
/// statements see the checkpoints added before.
pub(crate) const LOCK_EXECUTIONS: SqlText = SqlText {
    sqlite: "SELECT id FROM agent_executions WHERE conversation_id IN (SELECT value FROM json_each($1))",
    postgres: "SELECT id FROM agent_executions WHERE conversation_id = ANY($1) FOR UPDATE",
};

/// `$1` list of conversations, in every text. Rows are removed before the rows that they refer to.
pub(crate) const REMOVE_ROWS: [SqlText; 10] = [
    among!("DELETE FROM tool_grants WHERE conversation_id", "$1", ""),
    // The objects of the conversation's blobs are removed after the commit.
    among!(
        "INSERT INTO removed_objects (object_key, remove_after) SELECT object_key, created_at FROM blobs \
         WHERE object_key IS NOT NULL AND conversation_id",
        "$1",
        " ON CONFLICT DO NOTHING"
    ),
    among!("DELETE FROM blobs WHERE conversation_id", "$1", ""),
    among!(
        "DELETE FROM execution_checkpoints WHERE conversation_id",
        "$1",
        ""
    ),
    among!("DELETE FROM work_plans WHERE conversation_id", "$1", ""),
    among!("DELETE FROM trace_contexts WHERE conversation_id", "$1", ""),
    among!("DELETE FROM context_cuts WHERE conversation_id", "$1", ""),
    among!(
        "DELETE FROM agent_executions WHERE conversation_id",
        "$1",
        ""
    ),
    among!(
        "DELETE FROM conversation_budgets WHERE conversation_id",
        "$1",
        ""
    ),
    among!("DELETE FROM messages WHERE conversation_id", "$1", ""),
];

/// `$1` list of conversations.
pub(crate) const REMOVE_CONVERSATIONS: SqlText =
    among!("DELETE FROM conversations WHERE id", "$1", "");

/// `$1` list of conversations.
pub(crate) const REMOVE_EVENTS: SqlText = among!(
    "DELETE FROM agent_execution_events WHERE conversation_id",
    "$1",
    ""
);

/// `$1` id, `$2` now.
pub(crate) const INSERT_DELETED: &str = "INSERT INTO deleted_conversations (id, deleted_at) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at";

macro_rules! deleted_before {
    () => {
        "SELECT id FROM deleted_conversations WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2"
    };
}

/// `$1` before, `$2` limit. Skips rows that another transaction is removing.
pub(crate) const FORGET_DELETED: SqlText = SqlText {
    sqlite: concat!(
        "DELETE FROM deleted_conversations WHERE id IN (",
        deleted_before!(),
        ")"
    ),
    postgres: concat!(
        "DELETE FROM deleted_conversations WHERE id IN (",
        deleted_before!(),
        " FOR UPDATE SKIP LOCKED)"
    ),
};

/// `$1` id.
pub(crate) const IS_DELETED: &str = "SELECT COUNT(*) FROM deleted_conversations WHERE id = $1";
