-- Begins the lease of a worker. The second of two concurrent tries renews the lease of the first.
-- Index: key of worker_leases
--
-- :worker_id text
-- :identity text  The worker's identity at Temporal.
-- :lease_ms bigint
INSERT INTO worker_leases (id, identity, lease_ms)
VALUES (:worker_id, :identity, :lease_ms)
ON CONFLICT (id) DO UPDATE SET renewals = worker_leases.renewals + 1, takes = 0
