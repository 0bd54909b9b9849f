-- Appends an entry to the audit trail. The database assigns the number of the entry (`migrations/*/0307_tables.sql`).
-- Index: key of audit_events
--
-- :at timestamp
-- :keep_until timestamp
-- :tenant_id text?
-- :actor_kind text
-- :actor_id text
-- :action text
-- :target_kind text
-- :target_id text
-- :outcome text
-- :address text
-- :request_id text
-- :details text  JSON
INSERT INTO audit_events (
    at, keep_until, tenant_id, actor_kind, actor_id, action, target_kind, target_id, outcome, address, request_id,
    details
)
VALUES (
    :at, :keep_until, :tenant_id, :actor_kind, :actor_id, :action, :target_kind, :target_id, :outcome, :address,
    :request_id, :details
)
