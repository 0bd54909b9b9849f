//! Texts about messages: waiting messages, messages taken by turns, the context of a model.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use everturn_proto::{
    event::Attachment,
    turn::ToolCall,
    words::{MessageRole, OnBusy},
};
use sqlx::types::Json as Column;

use super::{super::dialect::Parts, Scalar, SqlText};
use crate::api::{Access, NewMessage};

/// True when a turn of the conversation is running, or when another message waits for an answer. The last parameter is
/// `reject`.
macro_rules! others {
    ($conversation:literal, $id:literal, $reject:literal) => {
        concat!(
            running_turn!("id", $conversation),
            " IS NOT NULL OR EXISTS (SELECT 1 FROM messages o WHERE o.conversation_id = ",
            $conversation,
            " AND o.status = 'queued' AND o.on_busy <> ",
            $reject,
            " AND o.id <> ",
            $id,
            ") AS has_others"
        )
    };
}

/// Counts the owner's other conversations with a running turn or a waiting message. The count looks at the tenant's
/// conversations, at most 10,000 with a waiting message and 10,000 with a running turn. The owner is a sub-select
/// instead of a join, so that PostgreSQL looks up the owner by key regardless of the plan.
macro_rules! turns_of_owner {
    ($conversation:literal, $tenant:literal) => {
        concat!(
            "(SELECT COUNT(*) FROM (SELECT conversation_id FROM \
             (SELECT DISTINCT conversation_id FROM messages WHERE tenant_id = ",
            $tenant,
            " AND status = 'queued' ORDER BY conversation_id LIMIT 10000) AS waiting_of_all \
             UNION SELECT conversation_id FROM \
             (SELECT DISTINCT conversation_id FROM agent_executions WHERE tenant_id = ",
            $tenant,
            " AND status = 'running' ORDER BY conversation_id LIMIT 10000) AS running_of_all) AS busy_of_all \
             WHERE busy_of_all.conversation_id <> ",
            $conversation,
            " AND (SELECT b.owner_id FROM conversations b WHERE b.id = busy_of_all.conversation_id) \
             = (SELECT owner_id FROM conversations WHERE id = ",
            $conversation,
            "))"
        )
    };
}

/// `$1` conversation, `$2` id, `$3` the client's id, `$4` content, `$5` now, `$6` the most waiting messages, `$7`
/// tenant, `$8` the most other conversations of the tenant with a running or waiting turn. 0 in `$8` means no limit;
/// otherwise the statement looks at no more than `$8` conversations. `$9` the behaviour while a turn is running. `$10`
/// reject. `$11` owner, `$12` attachments, `$13` like `$8` for the conversation's owner, `$14` sender or NULL. Inserts
/// no row when the caller may not see the conversation, when the message exists already or when a limit is reached. The
/// returned row tells whether another turn or message is unfinished.
pub(crate) const QUEUE_MESSAGE: &str = concat!(
    "INSERT INTO messages (conversation_id, id, tenant_id, role, status, \
     client_message_id, created_at, on_busy, content, tool_calls, tool_results, attachments, sent_by) \
     SELECT $1, $2, $7, 'user', 'queued', $3, $5, $9, $4, '[]', '[]', $12, $14 \
     WHERE EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND tenant_id = $7 \
      AND (CAST($11 AS TEXT) IS NULL OR owner_id = $11)) \
     AND (SELECT COUNT(*) FROM messages WHERE conversation_id = $1 AND status = 'queued') < $6 \
     AND ($8 = 0 OR (SELECT COUNT(*) FROM \
      (SELECT conversation_id FROM \
       (SELECT DISTINCT conversation_id FROM messages \
        WHERE tenant_id = $7 AND status = 'queued' AND conversation_id <> $1 \
        ORDER BY conversation_id LIMIT $8) AS waiting \
       UNION SELECT conversation_id FROM \
       (SELECT DISTINCT conversation_id FROM agent_executions \
        WHERE tenant_id = $7 AND status = 'running' AND conversation_id <> $1 \
        ORDER BY conversation_id LIMIT $8) AS running) AS busy) < $8) \
     AND ($13 = 0 OR ",
    turns_of_owner!("$1", "$7"),
    " < $13) ON CONFLICT DO NOTHING RETURNING ",
    others!("$1", "$2", "$10")
);

/// Returns [`QUEUE_MESSAGE`] with its parameters. `max_queued` is the limit for waiting messages in this call.
pub(crate) fn queue<'q>(
    new: &'q NewMessage,
    attachments: &'q [Attachment],
    max_queued: u32,
    access: &'q Access,
    now: DateTime<Utc>,
) -> Scalar<'q, bool> {
    sqlx::query_scalar(QUEUE_MESSAGE)
        .bind(&new.conversation_id)
        .bind(&new.message_id)
        .bind(&new.client_message_id)
        .bind(&new.content)
        .bind(now)
        .bind(i64::from(max_queued))
        .bind(&access.tenant_id)
        .bind(most(new.max_turns))
        .bind(new.on_busy.as_str())
        .bind(OnBusy::Reject.as_str())
        .bind(&access.owner_id)
        .bind(Column(attachments))
        .bind(most(new.max_turns_of_owner))
        .bind(&new.sent_by)
}

/// Returns the limit as a parameter, 0 for no limit.
fn most(limit: Option<NonZeroU32>) -> i64 {
    limit.map_or(0, |most| i64::from(most.get()))
}

/// `$1` conversation, `$2` tenant.
pub(crate) const COUNT_TURNS_OF_OWNER: &str = concat!("SELECT ", turns_of_owner!("$1", "$2"));

/// `$1` conversation, `$2` id, `$3` the client's id, `$4` content, `$5` reject, `$6` attachments. If both ids match a
/// row, the row with the client's id is returned. The row also has the turn that took the message, and the turn's
/// status.
pub(crate) const QUEUED_MESSAGE: &str = concat!(
    "SELECT found.id, found.content = $4 AND found.attachments = $6 AS has_this_content, \
     e.message_id AS turn_message_id, e.status AS turn_status, ",
    others!("$1", "found.id", "$5"),
    " FROM \
     (SELECT 0 AS rank, id, content, attachments, agent_execution_id FROM messages \
      WHERE conversation_id = $1 AND client_message_id = $3 \
      UNION ALL \
      SELECT 1 AS rank, id, content, attachments, agent_execution_id FROM messages \
      WHERE conversation_id = $1 AND id = $2) AS found \
     LEFT JOIN agent_executions e ON e.id = found.agent_execution_id \
     ORDER BY found.rank LIMIT 1"
);

/// `$1` conversation, `$2` id.
pub(crate) const WITHDRAW_MESSAGE: &str = "DELETE FROM messages WHERE conversation_id = $1 AND id = $2 AND status = 'queued' RETURNING attachments";

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` limit, `$5` reject. Returns a row per waiting message, in order, or
/// one row without a message. A message with `reject` does not count as waiting.
pub(crate) const RESUME_POINT: &str = concat!(
    "SELECT r.message_id AS running_message_id, ",
    last_checkpoint!(),
    " AS checkpoint_step, \
     EXISTS (SELECT 1 FROM agent_executions b WHERE b.conversation_id = c.id) AS has_begun, m.id AS waiting_id \
     FROM (SELECT id FROM conversations WHERE id = $1 AND ",
    visible!(),
    ") c LEFT JOIN agent_executions r ON r.id = ",
    running_turn!("id", "c.id"),
    " LEFT JOIN messages m ON m.conversation_id = c.id AND m.status = 'queued' AND m.on_busy <> $5 \
     ORDER BY m.created_at, m.id LIMIT $4"
);

/// `$1` conversation.
pub(crate) const COUNT_QUEUED: &str =
    "SELECT COUNT(*) FROM messages WHERE conversation_id = $1 AND status = 'queued'";

/// `$1` conversation, `$2` message. The row also has the status of the agent execution that took the message.
pub(crate) const USER_MESSAGE: &str = "SELECT m.status = 'queued' AS is_waiting, m.content, m.attachments, \
     e.status AS taker_status FROM messages m LEFT JOIN agent_executions e ON e.id = m.agent_execution_id \
     WHERE m.conversation_id = $1 AND m.id = $2 AND m.role = 'user'";

/// `$1` conversation, `$2` message, `$3` agent execution, `$4` sequence.
pub(crate) const TAKE_MESSAGE: &str = "UPDATE messages SET status = 'taken', agent_execution_id = $3, \
     sequence_number = $4 WHERE conversation_id = $1 AND id = $2 AND status = 'queued'";

/// A row of `messages` that enters the timeline.
pub(crate) struct InsertTakenMessage<'a> {
    pub(crate) conversation_id: &'a str,
    pub(crate) id: &'a str,
    pub(crate) role: MessageRole,
    pub(crate) agent_execution_id: &'a str,
    /// The step that wrote an assistant's message.
    pub(crate) step: Option<u32>,
    pub(crate) sequence_number: u32,
    pub(crate) now: DateTime<Utc>,
    /// The sub-agent that owns the message's thread; `None` for the conversation's own thread.
    pub(crate) sub_agent: Option<&'a str>,
    pub(crate) content: &'a str,
    pub(crate) tool_calls: &'a [ToolCall],
}

impl InsertTakenMessage<'_> {
    const TEXT: &'static str = "INSERT INTO messages (conversation_id, id, tenant_id, role, status, \
         agent_execution_id, step, sequence_number, created_at, thread, content, tool_calls, tool_results) \
         VALUES ($1, $2, (SELECT tenant_id FROM conversations WHERE id = $1), $3, 'taken', $4, $5, $6, $7, $8, $9, \
         $10, '[]')";

    pub(crate) fn add_to(&self, parts: &mut Parts) {
        parts.add(Self::TEXT, |values| {
            values
                .bind(self.conversation_id)
                .bind(self.id)
                .bind(self.role.as_str())
                .bind(self.agent_execution_id)
                .bind(self.step.map(i64::from))
                .bind(i64::from(self.sequence_number))
                .bind(self.now)
                .bind(self.sub_agent.unwrap_or_default())
                .bind(self.content)
                .bind(Column(self.tool_calls));
        });
    }
}

/// `$1` conversation, `$2` list of ids.
pub(crate) const MESSAGE_TEXTS: SqlText = among!(
    "SELECT id, content FROM messages WHERE conversation_id = $1 AND id",
    "$2",
    ""
);

/// `$1` conversation, `$2` list of ids.
pub(crate) const ASSISTANT_ROWS: SqlText = among!(
    "SELECT id, step, content, tool_calls, sequence_number FROM messages WHERE conversation_id = $1 \
     AND role = 'assistant' AND id",
    "$2",
    ""
);

macro_rules! set_tool_results {
    ($results:literal, $is_of_step:literal, $is_not_observed_now:literal) => {
        concat!(
            "UPDATE messages SET tool_results = (SELECT ",
            $results,
            " FROM tool_execution_records WHERE conversation_id = $1 AND execution_id ",
            $is_of_step,
            ") WHERE conversation_id = $1 AND id = $2 AND NOT EXISTS (SELECT 1 FROM tool_execution_records o \
             WHERE o.agent_execution_id = messages.agent_execution_id AND o.step = messages.step \
             AND o.observed_sequence IS NULL AND o.execution_id ",
            $is_not_observed_now,
            ")"
        )
    };
}

/// `$1` conversation, `$2` id, `$3` list of the tool executions of the step's calls, `$4` list of the tool executions
/// observed in the current transaction. Once every call is observed, the statement copies the results in call order, so
/// that a context is read from one table. No context is read earlier. A row of the copy is an `api::ToolResult`. SQLite
/// joins texts, because its JSON functions refuse deeply nested values.
pub(crate) const SET_TOOL_RESULTS: SqlText = SqlText {
    sqlite: set_tool_results!(
        "'[' || group_concat('{\"execution_id\":' || json_quote(execution_id) \
         || ',\"call_id\":' || json_quote(call_id) || ',\"tool_name\":' || json_quote(tool_name) \
         || ',\"is_error\":' || CASE WHEN is_error THEN 'true' ELSE 'false' END \
         || ',\"result\":' || result || '}', ',' ORDER BY call_index) || ']'",
        "IN (SELECT value FROM json_each($3))",
        "NOT IN (SELECT value FROM json_each($4))"
    ),
    postgres: set_tool_results!(
        "jsonb_agg(jsonb_build_object('execution_id', execution_id, 'call_id', call_id, 'tool_name', tool_name, \
         'is_error', is_error, 'result', result) ORDER BY call_index)",
        "= ANY($3)",
        "<> ALL($4)"
    ),
};

/// `$1` conversation, `$2` id, `$3` calls.
pub(crate) const SET_TOOL_CALLS: &str =
    "UPDATE messages SET tool_calls = $3 WHERE conversation_id = $1 AND id = $2";
