-- Ends the consent of an owner to a tool server, and returns its tokens. With a version, the statement ends only the
-- consent with these tokens.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
-- :consent_id text?
-- :version bigint?
DELETE FROM tool_consents
WHERE tenant_id = :tenant_id AND owner_id = :owner AND server = :server
    AND (CAST(:consent_id AS TEXT) IS NULL OR id = :consent_id)
    AND (CAST(:version AS BIGINT) IS NULL OR version = :version)
RETURNING id, sealed, version, created_at
