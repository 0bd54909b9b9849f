-- Stores the consent of an owner to a tool server, in the stead of an earlier consent.
-- Index: key of tool_consents
--
-- :tenant_id text
-- :owner text
-- :server text
-- :consent_id text
-- :sealed bytes
-- :now timestamp
INSERT INTO tool_consents (tenant_id, owner_id, server, id, sealed, version, renewed_until, created_at)
VALUES (:tenant_id, :owner, :server, :consent_id, :sealed, 1, NULL, :now)
ON CONFLICT (tenant_id, owner_id, server) DO UPDATE
SET id = excluded.id, sealed = excluded.sealed, version = 1, renewed_until = NULL, created_at = excluded.created_at
