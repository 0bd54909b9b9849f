//! Texts about unfinished conversations, and about the schedule of their checks.

use super::SqlText;

/// `$1` now, `$2` asked before. Changes a row for only one of the gateways that ask concurrently.
pub(crate) const TAKE_TURN: &str =
    "UPDATE reconciler SET asked_at = $1 WHERE asked_at <= $2 RETURNING id";

/// `$1` now, `$2` stalled since, `$3` limit. The conditions `running` and `queued` are the conditions of partial
/// indexes.
pub(crate) const SCHEDULE_CHECKS: &str = "INSERT INTO turn_checks (conversation_id, due_at) \
     SELECT stalled.conversation_id, $1 FROM \
     (SELECT e.conversation_id FROM agent_executions e JOIN conversations c ON c.id = e.conversation_id \
      WHERE e.status = 'running' AND e.parent_execution_id IS NULL AND c.updated_at <= $2 \
      UNION SELECT m.conversation_id FROM messages m WHERE m.status = 'queued' AND m.created_at <= $2) AS stalled \
     WHERE NOT EXISTS (SELECT 1 FROM turn_checks t WHERE t.conversation_id = stalled.conversation_id) LIMIT $3 \
     ON CONFLICT DO NOTHING";

/// `$1` now, `$2` limit.
pub(crate) const DUE_CHECKS: &str = "SELECT conversation_id, due_at FROM turn_checks WHERE due_at <= $1 \
     ORDER BY due_at, conversation_id LIMIT $2";

/// `$1` due at, `$2` list of conversations.
pub(crate) const SET_DUE: SqlText = among!(
    "UPDATE turn_checks SET due_at = $1 WHERE conversation_id",
    "$2",
    ""
);

/// `$1` conversation.
pub(crate) const UNFINISHED_CONVERSATION: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations WHERE id = $1"
);

/// `$1` conversation. The newest turn counts, as in `running_turn!`.
pub(crate) const UNFINISHED_TURN: &str = concat!(
    "SELECT r.message_id, ",
    last_checkpoint!(),
    " AS checkpoint_step FROM agent_executions r WHERE r.conversation_id = $1 AND r.status = 'running' \
     AND r.parent_execution_id IS NULL ORDER BY r.started_at DESC LIMIT 1"
);

/// `$1` conversation, `$2` limit.
pub(crate) const WAITING_MESSAGES: &str = "SELECT id, on_busy, created_at FROM messages WHERE conversation_id = $1 \
     AND status = 'queued' ORDER BY created_at, id LIMIT $2";

/// `$1` conversation.
pub(crate) const CHECK_NOTE: &str =
    "SELECT starts, last_sequence, signalled_until FROM turn_checks WHERE conversation_id = $1";

/// `$1` conversation, `$2` starts, `$3` last sequence, `$4` signalled until.
pub(crate) const NOTE_CHECK: &str = "UPDATE turn_checks SET starts = $2, last_sequence = $3, signalled_until = $4 \
     WHERE conversation_id = $1";

/// `$1` conversation.
pub(crate) const REMOVE_CHECK: &str = "DELETE FROM turn_checks WHERE conversation_id = $1";
