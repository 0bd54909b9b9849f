//! Texts about the audit trail. The database assigns the numbers of entries (`migrations/*/0300_tables.sql`).

/// `$1` at, `$2` keep until, `$3` tenant, `$4` and `$5` actor, `$6` action, `$7` and `$8` target, `$9` outcome, `$10`
/// address, `$11` request, `$12` details.
pub(crate) const APPEND: &str = "INSERT INTO audit_events (at, keep_until, tenant_id, actor_kind, actor_id, action, \
     target_kind, target_id, outcome, address, request_id, details) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// Selects entries after `$1`: `$2` the time at which the scan begins, `$3` since, `$4` until, `$5` action, `$6` actor,
/// `$7` limit. The scan begins after the last entry older than `$2`, not at the first entry of the table. The first
/// entry at `$2` or later is no safe start: entries are numbered in the order of their commits, so an earlier number
/// can have a later time.
macro_rules! entries {
    ($condition:literal) => {
        concat!(
            "SELECT id, at, tenant_id, actor_kind, NULLIF(actor_id, '') AS actor_id, action, target_kind, target_id, outcome, \
             NULLIF(address, '') AS address, NULLIF(request_id, '') AS request_id, details FROM audit_events WHERE id > $1 AND id > COALESCE(\
             (SELECT f.id FROM audit_events f WHERE f.at < $2 ORDER BY f.at DESC LIMIT 1), 0) \
             AND at >= $3 AND at < $4 AND (CAST($5 AS TEXT) IS NULL OR action = $5) \
             AND (CAST($6 AS TEXT) IS NULL OR actor_id = $6)",
            $condition,
            " ORDER BY id LIMIT $7"
        )
    };
}

/// The parameters of `entries!`.
pub(crate) const ENTRIES: &str = entries!("");

/// The parameters of `entries!`, `$8` tenant.
pub(crate) const ENTRIES_OF_TENANT: &str = entries!(" AND tenant_id = $8");

/// `$1` before, `$2` now, `$3` limit.
pub(crate) const PRUNE: &str = "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events \
     WHERE at < $1 AND keep_until <= $2 AND id < (SELECT MAX(id) FROM audit_events) ORDER BY at LIMIT $3)";
