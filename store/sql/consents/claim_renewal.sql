-- Lets one worker renew the tokens of a consent until a time. The statement changes no row while another worker
-- renews the tokens, and for tokens that were renewed meanwhile.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
-- :consent_id text
-- :version bigint
-- :until timestamp
-- :now timestamp
UPDATE tool_consents
SET renewed_until = CLOCK(:until, :now)
WHERE tenant_id = :tenant_id AND owner_id = :owner AND server = :server AND id = :consent_id AND version = :version
    AND (renewed_until IS NULL OR renewed_until <= CLOCK(:now))
