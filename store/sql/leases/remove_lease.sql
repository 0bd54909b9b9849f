-- Removes a taken lease.
-- Index: key of worker_leases
--
-- :worker_id text
-- :taken_renewals bigint  The renewals when the lease was taken.
DELETE FROM worker_leases
WHERE id = :worker_id AND renewals = :taken_renewals
