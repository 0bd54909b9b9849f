-- Removes rows of owners who are not refused, and whose ended sign-ins have expired.
-- Index: owner_refusals_over, key of owner_refusals
--
-- :before timestamp
-- :row_limit bigint
DELETE FROM owner_refusals
WHERE (tenant_id, owner_id) IN (
    SELECT tenant_id, owner_id FROM owner_refusals
    WHERE NOT is_refused AND keep_until < :before
    ORDER BY keep_until
    LIMIT :row_limit
)
