//! SQL texts that SQLite and PostgreSQL 15 both read: `$n` parameters, `RETURNING`, `ON CONFLICT`. Two things they
//! say differently, row locks and lists; such a text is a [`Text`] with both.

mod keys;

pub(crate) use keys::{INSERT_KEY, REMOVE_ENDED_SESSIONS, REVOKE_KEY, TOUCH_KEY};
pub use keys::{KEY, KEYS};

/// A text in the words of each database; a back end's `dialect::words` takes its own.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// For SQLite.
    pub sqlite: &'static str,
    /// For PostgreSQL.
    pub postgres: &'static str,
}

/// PostgreSQL locks the rows that it reads; SQLite's transaction holds the whole file.
macro_rules! locking {
    ($($text:tt)*) => {
        Text { sqlite: concat!($($text)*), postgres: concat!($($text)*, " FOR UPDATE") }
    };
}

/// `before` is in the list bound to `$n` by `dialect::list`: one text whatever the list's length.
macro_rules! among {
    ($before:expr, $list:literal, $after:literal) => {
        Text {
            sqlite: concat!(
                $before,
                " IN (SELECT value FROM json_each(",
                $list,
                "))",
                $after
            ),
            postgres: concat!($before, " = ANY(", $list, ")", $after),
        }
    };
}

/// Small columns of a tool record, then those a batch needs. `full_result` is left out: it may be a megabyte, and
/// only a claim or an end of the tool itself gives it to anyone.
macro_rules! tool_columns {
    () => {
        "execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error, \
         duration_ms, observed_sequence, kind, approval, input_hash, signatures, tool_input, events, result"
    };
}

macro_rules! conversation_columns {
    () => {
        "id, tenant_id, owner_id, agent, title, message_count, last_sequence, created_at, updated_at"
    };
}

/// Of a conversation: the caller may see it. `$tenant` and `$owner` are parameters; without an owner, every owner's.
macro_rules! visible {
    ($tenant:literal, $owner:literal) => {
        concat!(
            "tenant_id = ",
            $tenant,
            " AND (CAST(",
            $owner,
            " AS TEXT) IS NULL OR owner_id = ",
            $owner,
            ")"
        )
    };
}

mod sub_agents;

pub use sub_agents::*;
// Behind the macros that it uses.
mod outside;

mod tool_results;

pub use outside::WAITING_TOOLS;
pub(crate) use outside::{
    ANSWERED_TOOLS, APPROVE_TOOL, GRANTED_TOOLS, INSERT_GRANT, OUTSIDE_TOOL, SET_TOOL_CALLS,
    STORE_CLIENT_RESULT,
};
pub use tool_results::{TOOL_RESULT, TOOL_RESULT_OF_THREAD};

// ---- reader ----------------------------------------------------------------------------------------

/// conversation, from, limit, tenant, owner.
pub const EVENTS: &str = concat!(
    "SELECT id, conversation_id, message_id, event_type, event_data, sequence_number, created_at \
     FROM agent_execution_events WHERE conversation_id = $1 AND sequence_number >= $2 \
     AND EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
    visible!("$4", "$5"),
    ") ORDER BY sequence_number LIMIT $3"
);

/// conversation, tenant, owner. The engine runs one turn a conversation at a time, so of several executions that say they run
/// (one was terminated from outside) the newest is the one that does.
pub const CONVERSATION_STATUS: &str = concat!(
    "SELECT c.last_sequence, \
     (SELECT e.message_id FROM agent_executions e \
      WHERE e.conversation_id = c.id AND e.status = 'running' AND e.parent_execution_id IS NULL \
      ORDER BY e.started_at DESC LIMIT 1) AS running_message_id, \
     (SELECT m.id FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued' \
      ORDER BY m.created_at, m.id LIMIT 1) AS queued_message_id \
     FROM conversations c WHERE c.id = $1 AND ",
    visible!("$2", "$3")
);

/// list of conversations.
pub const LAST_SEQUENCES: Text = among!(
    "SELECT id, last_sequence FROM conversations WHERE id",
    "$1",
    ""
);

// ---- conversations ---------------------------------------------------------------------------------

macro_rules! insert_conversation {
    ($values:literal) => {
        concat!(
            "INSERT INTO conversations (id, tenant_id, owner_id, agent, title, created_at, updated_at) ",
            $values,
            " ON CONFLICT (id) DO NOTHING RETURNING ",
            conversation_columns!()
        )
    };
}

/// id, tenant, owner, agent, title, now. Nothing when the id is taken.
pub(crate) const INSERT_CONVERSATION: &str =
    insert_conversation!("VALUES ($1, $2, $3, $4, $5, $6, $6)");

/// The same; nothing also when a conversation with this id was deleted lately.
pub(crate) const INSERT_CONVERSATION_UNLESS_DELETED: &str = insert_conversation!(
    "SELECT $1, $2, $3, $4, $5, $6, $6 WHERE NOT EXISTS (SELECT 1 FROM deleted_conversations WHERE id = $1)"
);

/// id. Held until the transaction ends: it puts the writers of one conversation in a row (invariant 2).
pub const LOCK_CONVERSATION: Text =
    locking!("SELECT last_sequence FROM conversations WHERE id = $1");

/// id, tenant, owner. For a caller: see [`LOCK_CONVERSATION`].
pub const LOCK_VISIBLE_CONVERSATION: Text = locking!(
    "SELECT last_sequence FROM conversations WHERE id = $1 AND ",
    visible!("$2", "$3")
);

/// id, tenant, owner.
pub(crate) const CONVERSATION: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations WHERE id = $1 AND ",
    visible!("$2", "$3")
);

/// id.
pub(crate) const AGENT_OF: &str = "SELECT agent FROM conversations WHERE id = $1";

/// A page of conversations: of a tenant (`$1`), then, with an index for each, of one owner of it.
macro_rules! conversations {
    ($more:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            conversation_columns!(),
            " FROM conversations WHERE tenant_id = $1",
            $more,
            " ORDER BY updated_at DESC, id DESC LIMIT ",
            $limit
        )
    };
}

/// tenant, limit.
pub(crate) const CONVERSATIONS_FIRST: &str = conversations!("", "$2");

/// tenant, limit, updated_at, id.
pub const CONVERSATIONS_BEFORE: &str = conversations!(" AND (updated_at, id) < ($3, $4)", "$2");

/// tenant, owner, limit.
pub(crate) const OWN_CONVERSATIONS_FIRST: &str = conversations!(" AND owner_id = $2", "$3");

/// tenant, owner, limit, updated_at, id.
pub const OWN_CONVERSATIONS_BEFORE: &str =
    conversations!(" AND owner_id = $2 AND (updated_at, id) < ($4, $5)", "$3");

/// conversation, id, client id, content, now, most that may wait, tenant, most other conversations of the tenant in
/// which a turn runs or waits (0: any number; no more than that are looked at). Nothing when the message is there or a
/// limit is reached.
pub const QUEUE_MESSAGE: &str = "INSERT INTO messages (conversation_id, id, tenant_id, role, status, \
     client_message_id, created_at, content, tool_calls, tool_results) \
     SELECT $1, $2, $7, 'user', 'queued', $3, $5, $4, '[]', '[]' \
     WHERE (SELECT COUNT(*) FROM messages WHERE conversation_id = $1 AND status = 'queued') < $6 \
     AND ($8 = 0 OR (SELECT COUNT(*) FROM \
      (SELECT conversation_id FROM \
       (SELECT DISTINCT conversation_id FROM messages \
        WHERE tenant_id = $7 AND status = 'queued' AND conversation_id <> $1 \
        ORDER BY conversation_id LIMIT $8) AS waiting \
       UNION SELECT conversation_id FROM \
       (SELECT DISTINCT conversation_id FROM agent_executions \
        WHERE tenant_id = $7 AND status = 'running' AND conversation_id <> $1 \
        ORDER BY conversation_id LIMIT $8) AS running) AS busy) < $8) \
     ON CONFLICT DO NOTHING";

/// conversation, id, client id, content. The client's own id decides when both match. Also whose turn took it, and
/// how that turn stands.
pub const QUEUED_MESSAGE: &str = "SELECT found.id, found.content = $4 AS has_this_content, \
     e.message_id AS turn_message_id, e.status AS turn_status FROM \
     (SELECT 0 AS place, id, content, agent_execution_id FROM messages \
      WHERE conversation_id = $1 AND client_message_id = $3 \
      UNION ALL \
      SELECT 1 AS place, id, content, agent_execution_id FROM messages \
      WHERE conversation_id = $1 AND id = $2) AS found \
     LEFT JOIN agent_executions e ON e.id = found.agent_execution_id \
     ORDER BY found.place LIMIT 1";

/// conversation, id.
pub(crate) const WITHDRAW_MESSAGE: &str =
    "DELETE FROM messages WHERE conversation_id = $1 AND id = $2 AND status = 'queued'";

/// conversation, tenant, owner, limit. A row for each message that waits, in order, or one without. A turn has ended
/// before the next one begins, so one runs at the most; of data that is older than this rule, the newest counts.
pub const RESUME_POINT: &str = concat!(
    "SELECT r.message_id AS running_message_id, \
     (SELECT MAX(k.step_number) FROM execution_checkpoints k \
      WHERE k.agent_execution_id = r.id AND k.checkpoint_type = 'llm_complete') AS checkpoint_step, \
     EXISTS (SELECT 1 FROM agent_executions b WHERE b.conversation_id = c.id) AS has_begun, m.id AS waiting_id \
     FROM (SELECT id FROM conversations WHERE id = $1 AND ",
    visible!("$2", "$3"),
    ") c \
     LEFT JOIN agent_executions r ON r.id = (SELECT e.id FROM agent_executions e \
      WHERE e.conversation_id = c.id AND e.status = 'running' AND e.parent_execution_id IS NULL \
      ORDER BY e.started_at DESC LIMIT 1) \
     LEFT JOIN messages m ON m.conversation_id = c.id AND m.status = 'queued' \
     ORDER BY m.created_at, m.id LIMIT $4"
);

/// conversation.
pub(crate) const COUNT_QUEUED: &str =
    "SELECT COUNT(*) FROM messages WHERE conversation_id = $1 AND status = 'queued'";

/// id, tenant, owner, title.
pub(crate) const RENAME_CONVERSATION: &str = concat!(
    "UPDATE conversations SET title = $4 WHERE id = $1 AND ",
    visible!("$2", "$3"),
    " RETURNING ",
    conversation_columns!()
);

/// id, now.
pub(crate) const INSERT_DELETED: &str = "INSERT INTO deleted_conversations (id, deleted_at) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at";

macro_rules! deleted_before {
    () => {
        "SELECT id FROM deleted_conversations WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2"
    };
}

/// before, limit. What another transaction is about to remove is passed over.
pub(crate) const FORGET_DELETED: Text = Text {
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

/// id.
pub(crate) const IS_DELETED: &str = "SELECT COUNT(*) FROM deleted_conversations WHERE id = $1";

// ---- begin of a turn, context ----------------------------------------------------------------------

/// execution, conversation. That turn, once it has begun, and every other one that says it runs.
pub const BEGUN_TURNS: &str = "SELECT e.id, e.message_id, e.status, e.steps, e.started_at, e.agent_hash, \
     d.definition \
     FROM (SELECT * FROM agent_executions WHERE id = $1 AND conversation_id = $2 \
           UNION ALL \
           SELECT * FROM agent_executions WHERE conversation_id = $2 AND status = 'running' \
            AND parent_execution_id IS NULL AND id <> $1) AS e \
     JOIN agent_definitions d ON d.hash = e.agent_hash ORDER BY e.started_at, e.id";

/// hash, definition.
pub(crate) const INSERT_DEFINITION: &str = "INSERT INTO agent_definitions (hash, definition) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";

/// hash.
pub(crate) const DEFINITION: &str = "SELECT definition FROM agent_definitions WHERE hash = $1";

/// id, conversation, message, agent, hash, now. A root execution.
pub(crate) const INSERT_EXECUTION: &str = "INSERT INTO agent_executions \
     (id, conversation_id, message_id, tenant_id, root_execution_id, depth, agent, agent_hash, status, started_at) \
     VALUES ($1, $2, $3, (SELECT tenant_id FROM conversations WHERE id = $2), $1, 0, $4, $5, 'running', $6)";

/// conversation, message. Also who took it, and how that execution stands.
pub(crate) const USER_MESSAGE: &str = "SELECT m.status, m.content, e.status AS taker_status \
     FROM messages m LEFT JOIN agent_executions e ON e.id = m.agent_execution_id \
     WHERE m.conversation_id = $1 AND m.id = $2 AND m.role = 'user'";

/// conversation, title.
pub(crate) const SET_EMPTY_TITLE: &str =
    "UPDATE conversations SET title = $2 WHERE id = $1 AND title = ''";

/// conversation, limit, thread. The newest first.
pub const CONTEXT: &str = "SELECT role, content, tool_calls, tool_results FROM messages \
     WHERE conversation_id = $1 AND thread = $3 AND sequence_number IS NOT NULL \
     ORDER BY sequence_number DESC LIMIT $2";

// ---- claims ----------------------------------------------------------------------------------------

/// execution, conversation, step. One statement: an ended call is never paid again, and a generation is never
/// given twice (invariant 5).
pub const CLAIM_STEP: &str = "UPDATE agent_executions SET generation = generation + 1 \
     WHERE id = $1 AND conversation_id = $2 AND status = 'running' AND NOT EXISTS \
     (SELECT 1 FROM execution_checkpoints WHERE agent_execution_id = $1 AND step_number = $3 \
      AND checkpoint_type = 'llm_complete' AND execution_id = '') RETURNING generation";

/// execution, conversation.
pub(crate) const STATUS_OF_EXECUTION: &str =
    "SELECT status FROM agent_executions WHERE id = $1 AND conversation_id = $2";

/// execution, step, type.
pub const CHECKPOINT: &str = "SELECT execution_state FROM execution_checkpoints \
     WHERE agent_execution_id = $1 AND step_number = $2 AND checkpoint_type = $3 AND execution_id = ''";

/// id, conversation, message, agent execution, type, tool execution, step, generation, input tokens, output
/// tokens, now, state.
macro_rules! insert_checkpoint {
    () => {
        "INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, checkpoint_type, \
         execution_id, step_number, generation, input_tokens, output_tokens, created_at, execution_state) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (agent_execution_id, step_number, checkpoint_type, execution_id) DO "
    };
}

/// The first one wins.
pub(crate) const INSERT_CHECKPOINT: &str = concat!(insert_checkpoint!(), "NOTHING");

/// The newest generation wins; for a tool, whose generation is its attempt, the newest attempt.
pub(crate) const REPLACE_CHECKPOINT: &str = concat!(
    insert_checkpoint!(),
    "UPDATE SET execution_state = excluded.execution_state, generation = excluded.generation, \
     input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, created_at = excluded.created_at \
     WHERE execution_checkpoints.generation <= excluded.generation"
);

/// conversation, tool execution, agent execution.
pub(crate) const TOOL: &str = concat!(
    "SELECT ",
    tool_columns!(),
    ", full_result FROM tool_execution_records \
     WHERE conversation_id = $1 AND execution_id = $2 AND agent_execution_id = $3"
);

/// conversation, tool execution, agent execution, now, claimant. Gives the record when it may run. A claimant that asks
/// again did not hear the answer, so nothing ran: that is the same attempt.
pub(crate) const START_TOOL: &str = concat!(
    "UPDATE tool_execution_records SET status = 'running', claimant = $5, \
     attempt = attempt + CASE WHEN claimant = $5 THEN 0 ELSE 1 END, \
     started_at = COALESCE(started_at, $4) WHERE conversation_id = $1 AND execution_id = $2 \
     AND agent_execution_id = $3 AND approval IN ('', 'approved') AND (status = 'pending' \
     OR (status = 'running' AND (effect IN ('read', 'idempotent') OR claimant = $5))) RETURNING ",
    tool_columns!()
);

/// conversation, tool execution, agent execution, status, is error, duration, now, events, result, full result.
/// The first end wins, and gives its record.
pub(crate) const FINISH_TOOL: &str = concat!(
    "UPDATE tool_execution_records SET status = $4, is_error = $5, duration_ms = $6, finished_at = $7, \
     events = $8, result = $9, full_result = $10 \
     WHERE conversation_id = $1 AND execution_id = $2 AND agent_execution_id = $3 \
     AND status IN ('pending', 'running') RETURNING ",
    tool_columns!(),
    ", full_result"
);

// ---- save ------------------------------------------------------------------------------------------

/// execution, conversation, event id. How the execution stands, and whether that event is stored.
pub const SAVE_STATE: &str = "SELECT status, steps, message_id, \
     (SELECT sequence_number FROM agent_execution_events WHERE id = $3) AS stored_sequence \
     FROM agent_executions WHERE id = $1 AND conversation_id = $2";

/// execution.
pub(crate) const TOTALS: &str = "SELECT COUNT(*) AS calls, \
     CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens, \
     CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens \
     FROM execution_checkpoints WHERE agent_execution_id = $1 AND checkpoint_type = 'llm_complete'";

/// conversation, agent execution, tool execution. Locked: what is decided from the record must still hold when it
/// is written, and claims and ends of tools do not lock the conversation.
pub(crate) const TOOL_TO_OBSERVE: Text = locking!(
    "SELECT ",
    tool_columns!(),
    " FROM tool_execution_records WHERE conversation_id = $1 AND agent_execution_id = $2 AND execution_id = $3"
);

/// execution. Locked as above.
pub const OPEN_TOOLS: Text = locking!(
    "SELECT ",
    tool_columns!(),
    " FROM tool_execution_records WHERE agent_execution_id = $1 AND observed_sequence IS NULL \
     ORDER BY step, call_index"
);

/// conversation, list of ids.
pub(crate) const ASSISTANT_ROWS: Text = among!(
    "SELECT id, step, content, tool_calls, tool_results, sequence_number FROM messages WHERE conversation_id = $1 \
     AND role = 'assistant' AND id",
    "$2",
    ""
);

/// conversation, list of ids.
pub(crate) const PLANS: Text = among!(
    "SELECT id, title, steps FROM work_plans WHERE conversation_id = $1 AND id",
    "$2",
    ""
);

/// conversation, list of call ids.
pub(crate) const USED_CALL_IDS: Text = among!(
    "SELECT call_id FROM tool_execution_records WHERE conversation_id = $1 AND call_id",
    "$2",
    ""
);

/// conversation, message, execution, sequence.
pub(crate) const TAKE_MESSAGE: &str = "UPDATE messages SET status = 'taken', agent_execution_id = $3, \
     sequence_number = $4 WHERE conversation_id = $1 AND id = $2 AND status = 'queued'";

/// conversation, id, role, execution, step, sequence, now, thread, content, calls.
pub(crate) const INSERT_TAKEN_MESSAGE: &str = "INSERT INTO messages (conversation_id, id, tenant_id, role, status, \
     agent_execution_id, step, sequence_number, created_at, thread, content, tool_calls, tool_results) \
     VALUES ($1, $2, (SELECT tenant_id FROM conversations WHERE id = $1), $3, 'taken', $4, $5, $6, $7, $8, $9, $10, \
     '[]')";

/// conversation, id, results.
pub(crate) const SET_TOOL_RESULTS: &str =
    "UPDATE messages SET tool_results = $3 WHERE conversation_id = $1 AND id = $2";

/// Rows follow.
pub const INSERT_EVENTS: &str = "INSERT INTO agent_execution_events (id, conversation_id, message_id, \
     event_type, sequence_number, batch_key, created_at, event_data) ";

/// Rows follow.
pub(crate) const INSERT_TOOLS: &str = "INSERT INTO tool_execution_records (conversation_id, execution_id, \
     message_id, agent_execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, is_error, \
     duration_ms, observed_sequence, created_at, finished_at, kind, approval, input_hash, expires_at, signatures, \
     tool_input, events, result) ";

/// Follows the rows of [`INSERT_TOOLS`] for records that exist: one statement ends and observes them all.
pub(crate) const OR_OBSERVE_TOOLS: &str = " ON CONFLICT (conversation_id, execution_id) DO UPDATE SET \
     status = excluded.status, is_error = excluded.is_error, duration_ms = excluded.duration_ms, \
     observed_sequence = excluded.observed_sequence, result = excluded.result, approval = excluded.approval, \
     finished_at = COALESCE(tool_execution_records.finished_at, excluded.finished_at)";

/// Rows follow.
pub(crate) const INSERT_PLANS: &str = "INSERT INTO work_plans (conversation_id, id, message_id, title, steps, created_at, updated_at) ";

/// Follows the rows of [`INSERT_PLANS`].
pub(crate) const OR_UPDATE_PLANS: &str = " ON CONFLICT (conversation_id, id) DO UPDATE SET \
     title = excluded.title, steps = excluded.steps, updated_at = excluded.updated_at";

/// conversation, last sequence, added messages, now.
pub const ADVANCE_CONVERSATION: &str = "UPDATE conversations SET last_sequence = $2, \
     message_count = message_count + $3, updated_at = $4 WHERE id = $1";

/// execution, steps, status, error code, finished at.
pub(crate) const ADVANCE_EXECUTION: &str = "UPDATE agent_executions SET steps = $2, status = $3, error_code = $4, \
     finished_at = $5 WHERE id = $1";

// ---- retention, removal -------------------------------------------------------------------------------------

/// Of the conversation `c`: nothing happened since `$1`, nothing runs and nothing waits.
macro_rules! expired {
    () => {
        "c.updated_at < $1 \
         AND NOT EXISTS (SELECT 1 FROM agent_executions e WHERE e.conversation_id = c.id AND e.status = 'running') \
         AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.status = 'queued')"
    };
}

macro_rules! lock_expired {
    () => {
        concat!(
            "SELECT c.id FROM conversations c WHERE ",
            expired!(),
            " AND c.id > $2 ORDER BY c.id LIMIT $3"
        )
    };
}

/// before.
pub(crate) const COUNT_EXPIRED: &str = concat!(
    "SELECT COUNT(*) AS conversations, CAST(COALESCE(SUM(c.last_sequence), 0) AS BIGINT) AS events \
     FROM conversations c WHERE ",
    expired!()
);

/// before, after this id, limit. A conversation that someone is writing to is passed over.
pub(crate) const LOCK_EXPIRED: Text = Text {
    sqlite: lock_expired!(),
    postgres: concat!(lock_expired!(), " FOR UPDATE OF c SKIP LOCKED"),
};

/// before, list of conversations. Asked again once they are locked: PostgreSQL looked for what runs and what waits
/// before it had the lock.
pub(crate) const STILL_EXPIRED: Text = among!(
    concat!(
        "SELECT c.id, c.last_sequence FROM conversations c WHERE ",
        expired!(),
        " AND c.id"
    ),
    "$2",
    " ORDER BY c.id"
);

/// list of conversations. Before all else: a claim of a tool holds its record while it asks for its execution.
pub(crate) const REMOVE_TOOLS: Text = among!(
    "DELETE FROM tool_execution_records WHERE conversation_id",
    "$1",
    ""
);

/// list of conversations. From here on no worker thought dead adds a checkpoint, and those it added are seen.
pub(crate) const LOCK_EXECUTIONS: Text = Text {
    sqlite: "SELECT id FROM agent_executions WHERE conversation_id IN (SELECT value FROM json_each($1))",
    postgres: "SELECT id FROM agent_executions WHERE conversation_id = ANY($1) FOR UPDATE",
};

/// list of conversations, each. Rows before those that they name.
pub(crate) const REMOVE_ROWS: [Text; 5] = [
    among!("DELETE FROM tool_grants WHERE conversation_id", "$1", ""),
    among!(
        "DELETE FROM execution_checkpoints WHERE conversation_id",
        "$1",
        ""
    ),
    among!("DELETE FROM work_plans WHERE conversation_id", "$1", ""),
    among!(
        "DELETE FROM agent_executions WHERE conversation_id",
        "$1",
        ""
    ),
    among!("DELETE FROM messages WHERE conversation_id", "$1", ""),
];

/// list of conversations.
pub(crate) const REMOVE_CONVERSATIONS: Text =
    among!("DELETE FROM conversations WHERE id", "$1", "");

/// list of conversations.
pub(crate) const REMOVE_EVENTS: Text = among!(
    "DELETE FROM agent_execution_events WHERE conversation_id",
    "$1",
    ""
);
