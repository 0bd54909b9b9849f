-- Removes the consents that an owner has begun first.
-- Index: consent_requests_of_owner, key of consent_requests
--
-- :tenant_id text
-- :owner text
-- :keep bigint  The number of begun consents that stay.
-- :row_limit bigint
DELETE FROM consent_requests
WHERE state_hash IN (
    SELECT state_hash FROM consent_requests
    WHERE tenant_id = :tenant_id AND owner_id = :owner
    ORDER BY expires_at DESC
    LIMIT :row_limit OFFSET :keep
)
