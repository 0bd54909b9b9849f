-- Lets the next worker renew the tokens of a consent, after a renewal that failed.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
-- :consent_id text
-- :version bigint
UPDATE tool_consents
SET renewed_until = NULL
WHERE tenant_id = :tenant_id AND owner_id = :owner AND server = :server AND id = :consent_id AND version = :version
