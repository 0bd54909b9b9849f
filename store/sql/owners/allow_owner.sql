-- Allows a refused owner. Sign-ins from before the refusal stay ended. An admin of one tenant does not allow an owner
-- whom an admin of every tenant refuses.
-- Index: key of owner_refusals
--
-- :tenant_id text
-- :owner text
-- :of_all boolean  True for an admin of every tenant.
-- :keep_until timestamp
UPDATE owner_refusals
SET is_refused = FALSE, is_all_refused = FALSE, keep_until = :keep_until
WHERE tenant_id = :tenant_id AND owner_id = :owner AND is_refused AND (:of_all OR NOT is_all_refused)
