-- Takes a consent that an owner has begun, within its time. A second taker gets no row.
-- Index: key of consent_requests
--
-- :state_hash bytes
-- :now timestamp
DELETE FROM consent_requests
WHERE state_hash = :state_hash AND expires_at > CLOCK(:now)
RETURNING tenant_id, owner_id, server, sealed
