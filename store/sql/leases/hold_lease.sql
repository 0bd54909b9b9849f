-- Raises the renewals of a lease, as the worker would, without another change. A renewal that is being committed locks
-- the row: the statement waits for the renewal, and then changes no row, because the worker lives.
-- Index: key of worker_leases
--
-- :worker_id text
-- :seen_renewals bigint  The renewals that the caller has seen.
UPDATE worker_leases
SET renewals = renewals + 1
WHERE id = :worker_id AND renewals = :seen_renewals
RETURNING renewals
