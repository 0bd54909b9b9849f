-- Removes begun consents whose time is over.
-- Index: consent_requests_over, key of consent_requests
--
-- :now timestamp
-- :row_limit bigint
DELETE FROM consent_requests
WHERE state_hash IN (
    SELECT state_hash FROM consent_requests
    WHERE expires_at <= CLOCK(:now)
    ORDER BY expires_at
    LIMIT :row_limit
)
