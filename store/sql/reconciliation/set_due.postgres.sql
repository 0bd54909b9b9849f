-- Postpones the checks of conversations. PostgreSQL expects few ids of a list from a sub-select, and therefore looks up
-- each id. With a long list as a parameter, PostgreSQL may read the whole table.
-- Index: key of turn_checks
--
-- :due_at timestamp
-- :conversation_ids text[]
UPDATE turn_checks
SET due_at = :due_at
WHERE conversation_id = ANY(ARRAY(
    SELECT listed.id
    FROM (VALUES (:conversation_ids)) AS given (ids)
    CROSS JOIN LATERAL unnest(given.ids) AS listed (id)
))
