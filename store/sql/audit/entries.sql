-- Selects entries of the audit trail. The scan begins after the last entry older than `:scan_from`, not at the first
-- entry of the table. The first entry at `:scan_from` or later is no safe start: entries are numbered in the order of
-- their commits, so an entry with a smaller number may have a later time.
-- Index: key of audit_events, audit_events_by_time
--
-- :after_id bigint
-- :scan_from timestamp
-- :since timestamp
-- :until timestamp
-- :action text?
-- :actor text?
-- :row_limit bigint
SELECT id, at, tenant_id, actor_kind, NULLIF(actor_id, '') AS actor_id, action, target_kind, target_id, outcome,
    NULLIF(address, '') AS address, NULLIF(request_id, '') AS request_id, details
FROM audit_events
WHERE id > :after_id
    AND id > COALESCE((SELECT f.id FROM audit_events f WHERE f.at < :scan_from ORDER BY f.at DESC LIMIT 1), 0)
    AND at >= :since AND at < :until
    AND (CAST(:action AS TEXT) IS NULL OR action = :action)
    AND (CAST(:actor AS TEXT) IS NULL OR actor_id = :actor)
ORDER BY id
LIMIT :row_limit
