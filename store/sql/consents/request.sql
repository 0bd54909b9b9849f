-- Selects a consent that an owner has begun, within its time.
-- Index: key of consent_requests
--
-- :state_hash bytes
-- :now timestamp
SELECT tenant_id, owner_id, server, sealed
FROM consent_requests
WHERE state_hash = :state_hash AND expires_at > CLOCK(:now)
