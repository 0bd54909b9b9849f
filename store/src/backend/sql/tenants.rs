//! Texts about tenants.

/// Selects the smallest tenant id after `$after`. The search takes one step per index, regardless of a tenant's number
/// of rows.
macro_rules! next_tenant {
    ($after:literal) => {
        concat!(
            "(SELECT MIN(n.tenant_id) FROM (SELECT MIN(tenant_id) AS tenant_id FROM conversations WHERE tenant_id > ",
            $after,
            " UNION ALL SELECT MIN(tenant_id) FROM api_keys WHERE tenant_id > ",
            $after,
            " UNION ALL SELECT MIN(tenant_id) FROM usage_days WHERE tenant_id > ",
            $after,
            ") n)"
        )
    };
}

/// Selects the summaries of the tenants in `t`: `$1` now, `$2` the most conversations to count.
macro_rules! summaries {
    ($tenants:expr) => {
        concat!(
            $tenants,
            " SELECT t.id AS tenant_id, \
             (SELECT COUNT(*) FROM api_keys k WHERE k.tenant_id = t.id AND k.kind = 'key' AND k.revoked_at IS NULL \
              AND (k.expires_at IS NULL OR k.expires_at > $1)) AS valid_keys, \
             (SELECT COUNT(*) FROM (SELECT 1 AS one FROM conversations c WHERE c.tenant_id = t.id LIMIT $2) counted) \
             AS conversations, \
             (SELECT COUNT(*) FROM agent_executions e WHERE e.tenant_id = t.id AND e.status = 'running' \
              AND e.parent_execution_id IS NULL) AS running_turns, \
             (SELECT MAX(c.updated_at) FROM conversations c WHERE c.tenant_id = t.id) AS last_activity_at \
             FROM tenants t WHERE t.id IS NOT NULL ORDER BY t.id"
        )
    };
}

/// The parameters of `summaries!`, `$3` after this tenant, `$4` limit.
pub(crate) const TENANTS: &str = summaries!(concat!(
    "WITH RECURSIVE tenants (id, rank) AS (SELECT ",
    next_tenant!("$3"),
    ", 1 UNION ALL SELECT ",
    next_tenant!("t.id"),
    ", t.rank + 1 FROM tenants t WHERE t.id IS NOT NULL AND t.rank < $4)"
));

/// The parameters of `summaries!`, `$3` tenant.
pub(crate) const TENANT: &str = summaries!("WITH tenants (id) AS (SELECT CAST($3 AS TEXT))");

/// `$1` tenant or none for every tenant, `$2` first day, `$3` last day, `$4` tenant, `$5` day and `$6` model of the
/// cursor, `$7` limit.
pub(crate) const USAGE_OF_TENANTS: &str = concat!(
    "SELECT tenant_id, day, model, ",
    usage_sums!(),
    " FROM usage_days WHERE (CAST($1 AS TEXT) IS NULL OR tenant_id = $1) AND day >= $2 AND day <= $3 \
     AND (tenant_id, day, model) > ($4, $5, $6) GROUP BY tenant_id, day, model ORDER BY tenant_id, day, model LIMIT $7"
);
