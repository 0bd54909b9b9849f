-- Selects the leases of all workers.
-- Index: key of worker_leases
--
-- :row_limit bigint
SELECT id, identity, lease_ms, renewals, takes, is_ended
FROM worker_leases
ORDER BY id
LIMIT :row_limit
