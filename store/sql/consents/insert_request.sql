-- Stores a consent that an owner has begun.
-- Index: key of consent_requests
--
-- :state_hash bytes
-- :tenant_id text
-- :owner text
-- :server text
-- :sealed bytes
-- :expires_at timestamp
-- :now timestamp
INSERT INTO consent_requests (state_hash, tenant_id, owner_id, server, sealed, expires_at)
VALUES (:state_hash, :tenant_id, :owner, :server, :sealed, CLOCK(:expires_at, :now))
