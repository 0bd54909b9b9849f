-- Marks the lease of a worker that stops.
-- Index: key of worker_leases
--
-- :worker_id text
UPDATE worker_leases
SET renewals = renewals + 1, takes = 0, is_ended = TRUE
WHERE id = :worker_id
