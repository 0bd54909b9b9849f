-- Ends the sign-ins of an owner until now, and refuses the owner if `:is_refused` is true. An owner who is refused
-- stays refused. The statement inserts no row for a tenant with the most rows; requests at the same moment may pass the
-- limit by their number.
-- Index: key of owner_refusals
--
-- :tenant_id text
-- :owner text
-- :is_refused boolean
-- :is_all_refused boolean
-- :now timestamp
-- :all_ended_at timestamp?
-- :keep_until timestamp
-- :max_owners bigint  The most rows of a tenant, without rows that are over.
INSERT INTO owner_refusals (tenant_id, owner_id, is_refused, is_all_refused, ended_at, all_ended_at, keep_until)
SELECT :tenant_id, :owner, :is_refused, :is_all_refused, :now, :all_ended_at, :keep_until
WHERE (
        SELECT COUNT(*) FROM owner_refusals
        WHERE tenant_id = :tenant_id AND (is_refused OR keep_until >= :now)
    ) < :max_owners
    OR EXISTS (SELECT 1 FROM owner_refusals WHERE tenant_id = :tenant_id AND owner_id = :owner)
ON CONFLICT (tenant_id, owner_id) DO UPDATE
SET is_refused = owner_refusals.is_refused OR excluded.is_refused,
    is_all_refused = owner_refusals.is_all_refused OR excluded.is_all_refused,
    ended_at = excluded.ended_at,
    all_ended_at = COALESCE(excluded.all_ended_at, owner_refusals.all_ended_at),
    keep_until = excluded.keep_until
