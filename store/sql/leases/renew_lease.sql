-- Renews the lease of a worker. The statement changes no row when the worker has no lease yet.
-- Index: key of worker_leases
--
-- :worker_id text
-- :lease_ms bigint
UPDATE worker_leases
SET renewals = renewals + 1, takes = 0, lease_ms = :lease_ms
WHERE id = :worker_id
