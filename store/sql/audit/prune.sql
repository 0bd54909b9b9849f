-- Removes old entries of the audit trail. The newest entry stays, because the database numbers entries after the
-- largest number.
-- Index: audit_events_by_time, key of audit_events
--
-- :before timestamp
-- :now timestamp
-- :row_limit bigint
DELETE FROM audit_events
WHERE id IN (
    SELECT id FROM audit_events
    WHERE at < :before AND keep_until <= :now AND id < (SELECT MAX(id) FROM audit_events)
    ORDER BY at
    LIMIT :row_limit
)
