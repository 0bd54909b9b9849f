-- Stores the renewed tokens of a consent, unless the consent has ended or has other tokens.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
-- :consent_id text
-- :version bigint
-- :sealed bytes
UPDATE tool_consents
SET sealed = :sealed, version = version + 1, renewed_until = NULL
WHERE tenant_id = :tenant_id AND owner_id = :owner AND server = :server AND id = :consent_id AND version = :version
