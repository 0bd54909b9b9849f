-- Selects whether gateways refuse credentials of an owner. Most owners have no row.
-- Index: key of owner_refusals
--
-- :tenant_id text
-- :owner text
SELECT is_refused, ended_at, is_all_refused, all_ended_at
FROM owner_refusals
WHERE tenant_id = :tenant_id AND owner_id = :owner
