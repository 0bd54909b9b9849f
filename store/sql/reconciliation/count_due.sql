-- Counts the checks that are due.
-- Index: turn_checks_due
--
-- :now timestamp
-- :max_counted bigint  The most checks to count, the oldest first.
SELECT COUNT(*) AS count, MIN(due_at) AS oldest
FROM (
    SELECT due_at
    FROM turn_checks
    WHERE due_at <= :now
    ORDER BY due_at
    LIMIT :max_counted
) AS waiting
