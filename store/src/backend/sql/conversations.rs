//! Texts about conversations: rows, locks and lists.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Select, SqlText};
use crate::api::{Conversation, NewConversation};

macro_rules! insert_conversation {
    ($values:literal) => {
        concat!(
            "INSERT INTO conversations (id, tenant_id, owner_id, agent, title, created_at, updated_at, log_id) ",
            $values,
            " ON CONFLICT DO NOTHING RETURNING ",
            conversation_columns!()
        )
    };
}

/// [`insert`] binds the parameters. The statement returns no row when the id is taken.
pub(crate) const INSERT_CONVERSATION: &str =
    insert_conversation!("VALUES ($1, $2, $3, $4, $5, $6, $6, $7)");

/// [`insert`] binds the parameters. The statement returns no row when the id is taken, or when a conversation with the id
/// was deleted lately.
pub(crate) const INSERT_CONVERSATION_UNLESS_DELETED: &str = insert_conversation!(
    "SELECT $1, $2, $3, $4, $5, $6, $6, $7 WHERE NOT EXISTS (SELECT 1 FROM deleted_conversations WHERE id = $1)"
);

/// `$1` id, `$2` tenant, `$3` owner or empty, `$4` agent, `$5` title or empty, `$6` now, `$7` log.
pub(crate) fn insert<'q>(
    text: &'static str,
    id: &'q str,
    new: &'q NewConversation,
    now: DateTime<Utc>,
) -> Select<'q, Conversation> {
    sqlx::query_as(text)
        .bind(id)
        .bind(&new.access.tenant_id)
        .bind(new.access.owner_id.as_deref().unwrap_or_default())
        .bind(&new.agent)
        .bind(new.title.as_deref().unwrap_or_default())
        .bind(now)
        .bind(format!("log_{}", Uuid::now_v7().simple()))
}

/// `$1` id. The lock lasts until the transaction ends and serializes the writers of a conversation (invariant 2, one
/// order).
pub(crate) const LOCK_CONVERSATION: SqlText = locking!(
    "SELECT log_id, tenant_id, last_sequence, run_epoch, granted_epoch FROM conversations WHERE id = $1"
);

/// `$1` id, `$2` epoch of the run that owns the conversation, `$3` the largest granted epoch.
pub(crate) const SET_EPOCHS: &str =
    "UPDATE conversations SET run_epoch = $2, granted_epoch = $3 WHERE id = $1";

/// `$1` id, `$2` epoch of a run. Returns false when a newer run owns the conversation.
pub(crate) const HAS_CONVERSATION: &str =
    "SELECT NOT EXISTS (SELECT 1 FROM conversations WHERE id = $1 AND run_epoch > $2)";

/// `$1` id, `$2` tenant, `$3` owner. Locks like [`LOCK_CONVERSATION`], but only a conversation visible to the caller.
pub(crate) const LOCK_VISIBLE_CONVERSATION: SqlText = locking!(
    "SELECT last_sequence FROM conversations WHERE id = $1 AND ",
    visible!()
);

/// `$1` id, `$2` tenant, `$3` owner.
pub(crate) const CONVERSATION: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations WHERE id = $1 AND ",
    visible!()
);

/// `$1` id.
pub(crate) const AGENT_OF: &str = "SELECT agent FROM conversations WHERE id = $1";

/// `$1` id. A conversation without an owner belongs to its tenant alone.
pub(crate) const OWNER_OF: &str =
    "SELECT tenant_id, NULLIF(owner_id, '') AS owner_id FROM conversations WHERE id = $1";

/// Counts the calls of the conversation in `conversations` that wait for an answer from outside. The condition repeats
/// the condition of the index `tool_execution_records_waiting`, as in [`WAITING_TOOLS`](super::outside::WAITING_TOOLS).
macro_rules! waiting_calls {
    ($condition:literal) => {
        concat!(
            "(SELECT COUNT(*) FROM tool_execution_records r WHERE r.conversation_id = conversations.id \
             AND r.status = 'pending' AND (r.approval = 'pending' OR r.kind = 'client') AND ",
            $condition,
            ")"
        )
    };
}

/// The columns of an [`Activity`](crate::Activity) for the conversation in `conversations`. Every column is a look-up
/// in a partial index of unfinished rows. `ORDER BY` makes PostgreSQL use the index: otherwise PostgreSQL would read
/// every running agent execution into a hash table.
macro_rules! activity_columns {
    () => {
        concat!(
            "(SELECT e.id FROM agent_executions e WHERE e.conversation_id = conversations.id AND e.status = 'running' \
              ORDER BY e.started_at LIMIT 1) IS NOT NULL AS is_running, \
             (SELECT m.id FROM messages m WHERE m.conversation_id = conversations.id AND m.status = 'queued' \
              ORDER BY m.created_at, m.id LIMIT 1) IS NOT NULL AS has_queued, ",
            waiting_calls!("r.approval = 'pending'"),
            " AS waiting_approvals, ",
            waiting_calls!("r.approval <> 'pending'"),
            " AS waiting_client_tools"
        )
    };
}

/// Selects a page of the conversations of tenant `$1`, or of one owner in the tenant. Both queries have an index.
macro_rules! conversations {
    ($more:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            conversation_columns!(),
            ", ",
            activity_columns!(),
            " FROM conversations WHERE tenant_id = $1",
            $more,
            " ORDER BY updated_at DESC, id DESC LIMIT ",
            $limit
        )
    };
}

/// `$1` tenant, `$2` limit.
pub(crate) const CONVERSATIONS_FIRST: &str = conversations!("", "$2");

/// `$1` tenant, `$2` limit, `$3` updated at, `$4` id.
pub(crate) const CONVERSATIONS_BEFORE: &str =
    conversations!(" AND (updated_at, id) < ($3, $4)", "$2");

/// `$1` tenant, `$2` owner, `$3` limit.
pub(crate) const OWN_CONVERSATIONS_FIRST: &str = conversations!(" AND owner_id = $2", "$3");

/// `$1` tenant, `$2` owner, `$3` limit, `$4` updated at, `$5` id.
pub(crate) const OWN_CONVERSATIONS_BEFORE: &str =
    conversations!(" AND owner_id = $2 AND (updated_at, id) < ($4, $5)", "$3");

/// Makes the text of [`LAST_UPDATES`]. `$tenant` and `$owner` belong to the caller at the rank `$rank` of `$callers`.
macro_rules! last_updates {
    ($rank:literal, $tenant:literal, $owner:literal, $callers:literal) => {
        concat!(
            "SELECT ",
            $rank,
            " AS rank, CASE WHEN ",
            $owner,
            " IS NULL THEN (SELECT c.updated_at FROM conversations c WHERE c.tenant_id = ",
            $tenant,
            " ORDER BY c.updated_at DESC, c.id DESC LIMIT 1) \
             ELSE (SELECT c.updated_at FROM conversations c WHERE c.tenant_id = ",
            $tenant,
            " AND c.owner_id = ",
            $owner,
            " ORDER BY c.updated_at DESC, c.id DESC LIMIT 1) END AS updated_at FROM ",
            $callers,
            " ORDER BY rank"
        )
    };
}

/// `$1` JSON: a list of callers, each a list of the tenant and the owner or null.
pub(crate) const LAST_UPDATES: SqlText = SqlText {
    sqlite: last_updates!(
        "k.key",
        "json_extract(k.value, '$[0]')",
        "json_extract(k.value, '$[1]')",
        "json_each($1) AS k"
    ),
    postgres: last_updates!(
        "k.rank",
        "(k.caller ->> 0)",
        "(k.caller ->> 1)",
        "json_array_elements(CAST($1 AS json)) WITH ORDINALITY AS k (caller, rank)"
    ),
};

/// `$1` id, `$2` tenant, `$3` owner, `$4` title or empty.
pub(crate) const RENAME_CONVERSATION: &str = concat!(
    "UPDATE conversations SET title = $4 WHERE id = $1 AND ",
    visible!(),
    " RETURNING ",
    conversation_columns!()
);
