-- Selects the consent of an owner to a tool server.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
SELECT id, sealed, version, created_at
FROM tool_consents
WHERE tenant_id = :tenant_id AND owner_id = :owner AND server = :server
