//! Texts about the leases of workers, and about the workers' agent executions.

use super::SqlText;

/// `$1` worker, `$2` duration in milliseconds.
pub(crate) const RENEW_LEASE: &str =
    "UPDATE worker_leases SET renewals = renewals + 1, takes = 0, lease_ms = $2 WHERE id = $1";

/// `$1` worker, `$2` identity, `$3` duration in milliseconds. Handles two concurrent tries of one renewal.
pub(crate) const BEGIN_LEASE: &str = "INSERT INTO worker_leases (id, identity, lease_ms) VALUES ($1, $2, $3) \
     ON CONFLICT (id) DO UPDATE SET renewals = worker_leases.renewals + 1, takes = 0";

/// `$1` worker.
pub(crate) const END_LEASE: &str =
    "UPDATE worker_leases SET renewals = renewals + 1, takes = 0, is_ended = TRUE WHERE id = $1";

/// `$1` limit.
pub(crate) const LEASES: &str = "SELECT id, identity, lease_ms, renewals, takes, is_ended FROM worker_leases ORDER BY id LIMIT $1";

/// `$1` worker, `$2` the renewals that the caller has seen. A renewal that is being committed holds the row. The
/// statement waits for the renewal and then finds that the worker lives.
pub(crate) const TAKE_LEASE: &str = "UPDATE worker_leases SET renewals = renewals + 1, takes = takes + 1 \
     WHERE id = $1 AND renewals = $2 RETURNING renewals, takes";

/// `$1` worker, `$2` the renewals when the lease was taken.
pub(crate) const REMOVE_LEASE: &str = "DELETE FROM worker_leases WHERE id = $1 AND renewals = $2";

macro_rules! running_agent_executions {
    ($among:literal) => {
        concat!(
            "SELECT e.conversation_id, (SELECT c.execution_id FROM tool_execution_records c \
             WHERE c.conversation_id = e.conversation_id AND c.call_id = e.parent_tool_call_id) AS sub_agent_call, \
             (e.worker_id ",
            $among,
            " OR EXISTS (SELECT 1 FROM tool_execution_records t WHERE t.agent_execution_id = e.id \
             AND t.observed_sequence IS NULL AND substr(t.claimant, 1, $2) ",
            $among,
            ")) AS is_held FROM agent_executions e WHERE e.status = 'running' \
             ORDER BY is_held DESC, e.started_at DESC, e.id LIMIT $3"
        )
    };
}

/// `$1` list of workers, `$2` length of a worker's id, `$3` limit. The conditions `running` and `observed_sequence IS
/// NULL` are the conditions of partial indexes.
pub(crate) const RUNNING_EXECUTIONS: SqlText = SqlText {
    sqlite: running_agent_executions!("IN (SELECT value FROM json_each($1))"),
    postgres: running_agent_executions!("= ANY($1)"),
};
