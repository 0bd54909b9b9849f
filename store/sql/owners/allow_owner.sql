-- Allows a refused owner. Sign-ins from before the refusal stay ended.
-- Index: key of owner_refusals
--
-- :tenant_id text
-- :owner text
-- :keep_until timestamp
UPDATE owner_refusals
SET is_refused = FALSE, keep_until = :keep_until
WHERE tenant_id = :tenant_id AND owner_id = :owner AND is_refused
